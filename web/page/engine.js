// The model as the page sees it: a worker, the device it has, and what is done when either fails.
//
// Calls are promises. A device that is lost and a worker that breaks down are replaced: the new one gets the last snapshot and the
// visitor's examples, and the call that failed is an `Interrupted` error, after which the page may go on. A snapshot is taken by
// `keep`; what was done after the last one is lost with the device, and nothing else is. Where the replacement fails too, calls fail
// as `Broken`, and the next one tries again: nothing is asked of a worker that has not the whole of the visitor's model.

/** How often a device is replaced before the processor takes over; twice as often before it is given up. */
const REPLACEMENTS = 3;
/** Errors after which a worker answers nothing any more, and those after which its device is of no use. */
const BREAKDOWNS = ['Crashed', 'RuntimeError'];
const LOSSES = ['DeviceLost', 'Failed', ...BREAKDOWNS];

/** An error of the engine with a name that says what it means. */
export class EngineError extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

export class Engine {
  #worker = null;
  #calls = new Map();
  #next = 0;
  #snapshot = null;
  #examples = [];
  #lost = 0;
  /** Whether the worker works and has the visitor's model. */
  #whole = false;
  /** The making of such a worker, while it goes on. */
  #making = null;
  about = null;
  /** Why WebGPU is not used, if it is not. */
  fallback = null;

  /** Opens WebGPU, or the processor where that fails. */
  open() { return this.#make(() => this.#open()); }

  train(steps) { return this.#call('train', steps); }
  practise(steps) { return this.#call('practise', steps); }
  accuracy() { return this.#call('accuracy'); }
  state() { return this.#call('state'); }
  image(ink, width, height) { return this.#call('image', ink, width, height); }
  classify(image) { return this.#call('classify', image); }
  save() { return this.#call('save'); }

  async addExample(image, digit) {
    await this.#call('addExample', image, digit);
    this.#examples.push({ image, digit });
  }

  /** `training` or `weights`: what the file was. */
  async load(bytes, name) {
    const kind = await this.#call('load', bytes, name);
    await this.keep();
    return kind;
  }

  /** Takes a snapshot: what the visitor's browser may keep. */
  async keep() {
    this.#snapshot = await this.save();
    return { checkpoint: this.#snapshot, examples: this.#examples };
  }

  /** Goes on from a snapshot. A device that is lost meanwhile does not take it along: after `Interrupted` the next one has it. */
  async restore({ checkpoint, examples }) {
    [this.#snapshot, this.#examples] = [checkpoint, examples];
    try {
      await this.#call('load', checkpoint, 'the training of your last visit');
      for (const { image, digit } of examples) await this.#call('addExample', image, digit);
    } catch (error) {
      if (error.name === 'Refused') this.#forget();
      throw error;
    }
  }

  /** An untrained model, on the device there is if it still works. */
  async anew() {
    while (this.#making) await this.#making.catch(() => {});
    this.#forget();
    const works = this.#whole;
    await this.#make(async () => {
      const about = works && await this.#ask('open', this.about.backend).catch(() => null);
      if (about) this.about = about;
      else await this.#open();
    });
  }

  #forget() {
    [this.#snapshot, this.#examples] = [null, []];
  }

  async #call(method, ...args) {
    if (this.#making) await this.#making;
    try {
      if (!this.#whole) throw new EngineError('Crashed', 'its worker is gone');
      return await this.#ask(method, ...args);
    } catch (error) {
      if (!LOSSES.includes(error.name)) throw error;
      await this.#make(() => this.#replace(error));
      const what = BREAKDOWNS.includes(error.name) ? 'the program broke down' : 'the device was lost';
      throw new EngineError('Interrupted', `${what}: ${error.message}`);
    }
  }

  /** Makes a worker with the visitor's model; all who ask for one meanwhile wait for the same. */
  #make(how) {
    const make = async () => {
      this.#whole = false;
      try {
        await how();
        this.#whole = true;
      } finally {
        this.#making = null;
      }
    };
    this.#making ??= make();
    return this.#making;
  }

  async #replace(error) {
    this.#broke(error);
    if (this.#lost === 2 * REPLACEMENTS) throw new EngineError('Broken', 'it broke down too often: reload the page');
    this.#lost += 1;
    try {
      await this.#open();
      if (this.#snapshot) {
        const kind = await this.#ask('load', this.#snapshot, 'the last snapshot');
        if (kind !== 'training') throw new Error('the last snapshot is no training');
      }
      for (const { image, digit } of this.#examples) await this.#ask('addExample', image, digit);
    } catch (next) {
      throw new EngineError('Broken', `the network could not be brought back after a failure (${error.message}): ${next.message}`);
    }
  }

  async #open() {
    this.#start();
    if (this.#lost < REPLACEMENTS) {
      try {
        this.about = await this.#ask('open', 'webgpu');
        this.fallback = null;
        return;
      } catch (error) {
        this.fallback = error.message;
        if (BREAKDOWNS.includes(error.name)) this.#start();
      }
    } else {
      this.fallback = `the GPU was lost ${this.#lost} times`;
    }
    this.about = await this.#ask('open', 'host');
  }

  /** Starts a worker in the place of the one there is. */
  #start() {
    this.#worker?.terminate();
    const worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
    worker.onmessage = ({ data }) => this.#answered(data);
    worker.onerror = ({ message }) => {
      if (worker === this.#worker) this.#broke(new EngineError('Crashed', message ?? 'the worker could not be loaded'));
    };
    this.#worker = worker;
  }

  #ask(method, ...args) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args });
    });
  }

  #answered({ id, result, error }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) call?.reject(new EngineError(error.name, error.message));
    else call?.resolve(result);
  }

  /** The worker is of no use any more: no call to it will be answered. */
  #broke(error) {
    this.#whole = false;
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }
}

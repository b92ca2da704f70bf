// The model as the page sees it: a worker, the device it has, and what is done when either fails.
//
// Calls are promises. A device that is lost and a worker that breaks down are replaced: the new one gets the last snapshot and the
// visitor's examples, and the call that failed is an `Interrupted` error, after which the page may go on. A snapshot is taken by
// `keep`; what was done after the last one is lost with the device, and nothing else is.

/** How often a device is replaced before the processor takes over. */
const REPLACEMENTS = 3;

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
  #replacing = null;
  about = null;
  /** Why WebGPU is not used, if it is not. */
  fallback = null;

  /** Opens WebGPU, or the processor where that fails. */
  async open() {
    this.#worker?.terminate();
    for (const { reject } of this.#calls.values()) reject(new EngineError('Crashed', 'the worker was replaced'));
    this.#calls.clear();
    this.#worker = new Worker(new URL('worker.js', import.meta.url), { type: 'module' });
    this.#worker.onmessage = ({ data }) => this.#answered(data);
    this.#worker.onerror = (event) => this.#broke(event.message ?? 'the worker could not be loaded');
    if (this.#lost < REPLACEMENTS) {
      try {
        this.about = await this.#ask('open', 'webgpu');
        this.fallback = null;
        return;
      } catch (error) {
        if (error.name === 'Crashed') throw error;
        this.fallback = error.message;
      }
    } else {
      this.fallback = `the GPU was lost ${this.#lost} times`;
    }
    this.about = await this.#ask('open', 'host');
  }

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

  /** Goes on from a snapshot. */
  async restore({ checkpoint, examples }) {
    await this.load(checkpoint, 'the training of your last visit');
    for (const { image, digit } of examples) await this.addExample(image, digit);
  }

  /** An untrained model on the device there is. */
  async anew() {
    this.#snapshot = null;
    this.#examples = [];
    await this.#ask('open', this.about.backend);
  }

  async #call(method, ...args) {
    if (this.#replacing) await this.#replacing;
    try {
      return await this.#ask(method, ...args);
    } catch (error) {
      if (!['DeviceLost', 'Failed', 'Crashed', 'RuntimeError'].includes(error.name)) throw error;
      // Several calls may fail of one loss.
      this.#replacing ??= this.#replace().finally(() => { this.#replacing = null; });
      await this.#replacing;
      throw new EngineError('Interrupted', error.message);
    }
  }

  async #replace() {
    this.#lost += 1;
    if (this.#lost > 2 * REPLACEMENTS) throw new EngineError('Broken', `it broke down ${this.#lost} times; reload the page`);
    await this.open();
    if (this.#snapshot) await this.#ask('load', this.#snapshot, 'the last snapshot');
    for (const { image, digit } of this.#examples) await this.#ask('addExample', image, digit);
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

  #broke(message) {
    for (const { reject } of this.#calls.values()) reject(new EngineError('Crashed', message));
    this.#calls.clear();
  }
}

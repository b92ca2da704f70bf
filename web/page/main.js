// The page: what its buttons do, and what it says. The model is in `engine.js`.

import { Curve } from './curve.js';
import { Engine } from './engine.js';
import { Field } from './field.js';
import * as store from './store.js';

/** Steps between two looks at the page; between two snapshots; of practice on an example. */
const CHUNK = 8;
const KEEP = 24;
const PRACTICE = 24;
/** From how probable an answer on it is given without a doubt. */
const SURE = 0.6;
/** The largest file that is read: no file of this network comes near. */
const LARGEST = 64 << 20;

const $ = (id) => document.getElementById(id);
const engine = new Engine();
const curve = new Curve($('curve'));
/** The training that goes on or waits for its turn, and whether it is still wanted. */
let training = null;
/** Steps made, when the model was last asked. */
let made = 0;
/** The visitor's last action, for which the next one waits, and how many there were. */
let last = Promise.resolve();
let actions = 0;
/** The image of what is drawn. */
let drawn = null;

function say(text, isBad = false) {
  $('notice').textContent = text;
  $('notice').classList.toggle('bad', isBad);
}

/** Says more than was said last. */
function add(text) {
  say(`${$('notice').textContent} ${text}`, $('notice').classList.contains('bad'));
}

/** Runs an action of the visitor's; what goes wrong is said, and the page goes on. */
async function attempt(action) {
  const all = [[action, 'What you asked for was not done; try again. The network is at'], [refresh, 'The network is at']];
  for (const [run, where] of all) {
    try {
      await run();
    } catch (error) {
      await failed(error, where);
    }
  }
}

async function failed(error, where) {
  try {
    if (error.name !== 'Interrupted') throw error;
    await replaced(error, where);
  } catch (final) {
    say(sentence(final.message), true);
  }
}

/** Says that the device was replaced, and which step that led to. */
async function replaced(error, where) {
  showDevice();
  const steps = await refresh();
  // The answer to the drawing may have been lost too.
  if ($('answer').dataset.of !== ($('field').dataset.drawn ?? '')) await classify();
  say(`${sentence(error.message)} ${whereItRuns()} ${where} step ${steps}.`, true);
}

/** A message as a sentence; names of files stay as they are. */
const sentence = (text) => text.replace(/^[a-z]+ /, (word) => word[0].toUpperCase() + word.slice(1)) + (/[.!?]$/.test(text) ? '' : '.');
const bytes = (count) => (count < 1 << 20 ? `${(count / 1024).toFixed(0)} KiB` : `${(count / (1 << 20)).toFixed(1)} MiB`);
const whereItRuns = () => (engine.about.backend === 'webgpu' ? 'It runs on WebGPU.' : 'It runs on the processor.');

function showDevice() {
  const { backend, name, driver, adapter } = engine.about;
  $('backend').textContent = backend === 'webgpu' ? 'WebGPU' : 'Processor (WebAssembly)';
  $('adapter').textContent = adapter || (driver && driver !== backend ? `${name} (${driver})` : name);
}

/** The button that begins and ends a training. */
function showTraining() {
  const isDone = made >= engine.about.stepsInAll;
  $('train').textContent = training?.isWanted ? 'Pause' : training ? 'Pausing…' : isDone ? 'Trained' : made ? 'Go on' : 'Train';
  $('train').disabled = training === null && isDone;
}

/** Numbers and buttons as they are now; how many steps are made. */
async function refresh() {
  const state = await engine.state();
  const all = engine.about.stepsInAll;
  made = state.steps;
  // A lost device takes steps with it.
  curve.cut(made);
  $('step').textContent = `${state.steps} of ${Math.max(all, state.steps)}`;
  $('progress').max = all;
  $('progress').value = Math.min(state.steps, all);
  $('loss').textContent = curve.losses.length ? curve.losses.at(-1).toPrecision(3) : '–';
  $('memory').textContent = bytes(state.memoryBytes);
  $('heap').textContent = bytes(state.heapBytes);
  showTraining();
  for (const id of ['anew', 'save', 'load']) $(id).disabled = false;
  const count = state.examples;
  if (count) $('taught').textContent = `${count} ${count === 1 ? 'example' : 'examples'} of yours so far.`;
  for (const button of $('teach').children) button.disabled = drawn === null;
  return made;
}

/** Keeps a snapshot for a device that is lost and for the next visit. */
async function keep() {
  const snapshot = await engine.keep();
  let unkept = '';
  try {
    await store.put({ ...snapshot, losses: curve.losses, first: curve.first });
  } catch (error) {
    unkept = `This browser does not keep the training for your next visit (${error?.message ?? error}): save it as a file.`;
  }
  // Said again it would be read out again.
  if ($('unkept').textContent !== unkept) $('unkept').textContent = unkept;
}

async function showAccuracy() {
  const accuracy = await engine.accuracy();
  $('accuracy').textContent = `${(100 * accuracy).toFixed(1)} %`;
  $('accuracy').dataset.value = accuracy;
}

/** Trains until it is done or not wanted any more. */
async function train(run) {
  try {
    await steps(run);
    await keep();
    await showAccuracy();
    await classify();
    await refresh();
    say(made >= engine.about.stepsInAll ? `Trained. Draw a digit! ${whereItRuns()}` : `Paused at step ${made}.`);
  } finally {
    training = null;
    showTraining();
  }
}

async function steps(run) {
  const times = [];
  let kept = 0;
  if (run.isWanted) say('Training…');
  while (run.isWanted) {
    try {
      const start = performance.now();
      const losses = await engine.train(CHUNK);
      times.push((performance.now() - start) / losses.length);
      showTime(times);
      curve.add(losses, (await engine.state()).steps);
      kept += losses.length;
      await refresh();
      if (made >= engine.about.stepsInAll) return;
      if (kept >= KEEP) {
        kept = 0;
        await keep();
        await showAccuracy();
      }
    } catch (error) {
      if (error.name !== 'Interrupted') throw error;
      await replaced(error, 'The training goes on from');
    }
  }
}

function showTime(times) {
  // The first steps compile their kernels.
  const sorted = times.slice(times.length > 2 ? 1 : 0).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  $('time').textContent = `${median.toFixed(1)} ms`;
  $('time').dataset.value = median;
}

/** Does something with the model after what was begun before; a training stops for it. */
function act(action) {
  actions += 1;
  pause();
  last = last.then(() => attempt(action));
  return last;
}

/** Ends the training there is, after the steps that are under way. */
function pause() {
  if (training === null) return;
  training.isWanted = false;
  showTraining();
}

function startOrPause(event) {
  // Of a double click the first counts.
  if (event.detail > 1) return;
  if (training !== null) {
    pause();
    return;
  }
  const run = { isWanted: true };
  act(() => train(run));
  training = run;
  showTraining();
}

/** Says what is drawn, and marks the answer with the drawing it is of. */
async function classify() {
  const version = $('field').dataset.drawn ?? '';
  drawn = null;
  const { image, probabilities, text } = await look();
  // What was drawn meanwhile has an answer of its own, which may have been quicker.
  if (version !== ($('field').dataset.drawn ?? '')) return;
  drawn = image;
  [...$('bars').children].forEach((bar, digit) => {
    const percent = probabilities ? `${Math.round(100 * probabilities[digit])}%` : '';
    bar.querySelector('meter').value = probabilities?.[digit] ?? 0;
    bar.querySelector('meter').setAttribute('aria-valuetext', percent || 'unknown');
    bar.querySelector('span').textContent = percent;
  });
  $('answer').textContent = text;
  $('answer').dataset.of = version;
}

/** What the network says to the drawing: its image and the probabilities, where there are any, and a sentence. */
async function look() {
  const { ink, width, height } = field.ink();
  let image;
  try {
    image = await engine.image(ink, width, height);
  } catch (error) {
    if (error.name !== 'Refused') throw error;
    return { image: null, probabilities: null, text: sentence(error.message) };
  }
  const { steps } = await engine.state();
  const { probabilities, digit, isDigit } = await engine.classify(image);
  if (!isDigit) {
    const text = 'This looks like no digit. Clear the field and draw one, or say below what it is.';
    return { image, probabilities: null, text };
  }
  const share = probabilities[digit];
  const percent = `${Math.round(100 * share)} %`;
  let text = `It is a ${digit} (${percent}).`;
  if (steps === 0) text = 'The network is not trained yet: this is a guess.';
  else if (share < SURE) text = `Not sure: perhaps a ${digit} (${percent}).`;
  return { image, probabilities, text };
}

async function teach(digit) {
  const image = drawn;
  if (image === null) return;
  await act(async () => {
    say('Practising on your example…');
    await engine.addExample(image, digit);
    const losses = await engine.practise(PRACTICE);
    curve.add(losses, (await engine.state()).steps);
    await keep();
    await showAccuracy();
    await classify();
    say(`Practised ${PRACTICE} steps. Your drawing: ${$('answer').textContent}`);
  });
}

async function save() {
  // A training goes on meanwhile: the file is of a moment between its steps.
  await attempt(async () => {
    const file = new Blob([await engine.save()], { type: 'application/octet-stream' });
    const link = document.createElement('a');
    link.href = URL.createObjectURL(file);
    link.download = 'digits.safetensors';
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    say('Saved as digits.safetensors.');
  });
}

async function load(file) {
  await act(async () => {
    const kind = await engine.load(new Uint8Array(await file.arrayBuffer()), file.name);
    curve.set([], 0);
    await keep();
    await showAccuracy();
    await classify();
    const steps = await refresh();
    say(kind === 'training'
      ? `Loaded ${file.name}: the training is at step ${steps}.`
      : `Loaded the weights of ${file.name}: training starts at step 0 with them.`);
  });
}

async function anew() {
  await act(async () => {
    await engine.anew();
    showDevice();
    await store.remove().catch(() => {});
    curve.set([], 0);
    $('accuracy').textContent = $('time').textContent = '–';
    $('taught').textContent = 'No examples of yours yet.';
    await classify();
    await refresh();
    say(`A new, untrained network. ${whereItRuns()}`);
  });
}

/** A file that was dropped or chosen: a checkpoint, or a picture for the field. */
async function take(file) {
  if (!file) return;
  if (file.size > LARGEST) {
    say(`${file.name} is too large: files of up to ${bytes(LARGEST)} are read.`, true);
    return;
  }
  if (file.type.startsWith('image/')) {
    try {
      await field.show(file);
    } catch {
      say(`${file.name} is a picture that this browser cannot read.`, true);
    }
    return;
  }
  await load(file);
}

const field = new Field($('field'), $('pen'), () => attempt(classify));

function wire() {
  for (let digit = 0; digit < 10; digit += 1) {
    const bar = document.createElement('li');
    bar.innerHTML = `<div><meter min="0" max="1" value="0" aria-label="${digit}"></meter><span></span></div>`;
    $('bars').append(bar);
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = digit;
    button.disabled = true;
    button.addEventListener('click', () => teach(digit));
    $('teach').append(button);
  }
  $('train').addEventListener('click', startOrPause);
  $('anew').addEventListener('click', anew);
  $('clear').addEventListener('click', () => field.clear());
  $('save').addEventListener('click', save);
  $('load').addEventListener('click', () => $('file').click());
  $('file').addEventListener('change', async () => {
    await take($('file').files[0]);
    $('file').value = '';
  });
  addEventListener('dragover', (event) => {
    event.preventDefault();
    document.body.classList.add('dragged');
  });
  addEventListener('dragleave', () => document.body.classList.remove('dragged'));
  addEventListener('drop', (event) => {
    event.preventDefault();
    document.body.classList.remove('dragged');
    take(event.dataTransfer.files[0]);
  });
}

async function begin() {
  wire();
  try {
    await engine.open();
  } catch (error) {
    say(`The page cannot work here: ${error.message}.`, true);
    return;
  }
  say(engine.fallback
    ? `No WebGPU here: ${sentence(engine.fallback)} The network runs on the processor instead, more slowly.`
    : `Ready. ${whereItRuns()}`, engine.fallback !== null);
  await attempt(showDevice);
  document.body.dataset.ready = String(Math.round(performance.now()));
  const kept = await store.get().catch(() => undefined);
  if (!kept) return;
  if (actions > 0) {
    last = last.then(() => add('The training of your last visit was not brought back, because you had begun something else.'));
    return;
  }
  await act(async () => {
    try {
      await engine.restore(kept);
    } catch (error) {
      if (error.name !== 'Interrupted') throw error;
      await replaced(error, 'The network is at');
    }
    curve.set(kept.losses ?? [], kept.first ?? 0);
    await showAccuracy();
    add(`The training of your last visit is back, at step ${await refresh()}.`);
  });
}

begin();

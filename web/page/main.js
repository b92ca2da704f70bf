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

const $ = (id) => document.getElementById(id);
const engine = new Engine();
const curve = new Curve($('curve'));
let isTraining = false;
/** The visitor's last action: the next one waits for it. */
let last = Promise.resolve();
/** The image of what is drawn, and what it was said to be. */
let drawn = null;
let keeps = true;

function say(text, isBad = false) {
  $('notice').textContent = text;
  $('notice').classList.toggle('bad', isBad);
}

/** Runs an action of the visitor's; what goes wrong is said, and the page goes on. */
async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    try {
      if (error.name !== 'Interrupted') throw error;
      await replaced(error);
    } catch (final) {
      say(sentence(final.message), true);
    }
    return undefined;
  } finally {
    await refresh();
  }
}

/** Says that the device was replaced, and where that left the training. */
async function replaced(error) {
  await showDevice();
  const { steps } = await engine.state();
  curve.set(curve.losses.slice(0, steps));
  say(`The device was lost: ${sentence(error.message)} ${whereItRuns()} The training goes on from step ${steps}.`, true);
}

/** A message as a sentence; names of files stay as they are. */
const sentence = (text) => text.replace(/^[a-z]+ /, (word) => word[0].toUpperCase() + word.slice(1)) + (/[.!?]$/.test(text) ? '' : '.');
const bytes = (count) => (count < 1 << 20 ? `${(count / 1024).toFixed(0)} KiB` : `${(count / (1 << 20)).toFixed(1)} MiB`);
const whereItRuns = () => (engine.about.backend === 'webgpu' ? 'It runs on WebGPU.' : 'It runs on the processor.');

async function showDevice() {
  const { backend, name, driver, adapter } = engine.about;
  $('backend').textContent = backend === 'webgpu' ? 'WebGPU' : 'Processor (WebAssembly)';
  $('adapter').textContent = adapter || (driver && driver !== backend ? `${name} (${driver})` : name);
}

/** Numbers and buttons as they are now. */
async function refresh() {
  let state;
  try {
    state = await engine.state();
  } catch {
    return;
  }
  const all = engine.about.stepsInAll;
  const isDone = state.steps >= all;
  $('step').textContent = `${state.steps} of ${Math.max(all, state.steps)}`;
  $('progress').max = all;
  $('progress').value = Math.min(state.steps, all);
  $('loss').textContent = curve.losses.length ? curve.losses.at(-1).toPrecision(3) : '–';
  $('memory').textContent = bytes(state.memoryBytes);
  $('heap').textContent = bytes(state.heapBytes);
  $('train').textContent = isTraining ? 'Pause' : isDone ? 'Trained' : state.steps ? 'Go on' : 'Train';
  $('train').disabled = !isTraining && isDone;
  for (const id of ['anew', 'save', 'load']) $(id).disabled = false;
  const count = state.examples;
  if (count) $('taught').textContent = `${count} ${count === 1 ? 'example' : 'examples'} of yours so far.`;
  for (const button of $('teach').children) button.disabled = drawn === null;
}

/** Keeps a snapshot for a device that is lost and for the next visit. */
async function keep() {
  const snapshot = await engine.keep();
  if (!keeps) return;
  try {
    await store.put({ ...snapshot, losses: curve.losses });
  } catch (error) {
    keeps = false;
    say(`This browser does not keep the training for your next visit (${error?.message ?? error}): save it as a file.`, true);
  }
}

async function showAccuracy() {
  const accuracy = await engine.accuracy();
  $('accuracy').textContent = `${(100 * accuracy).toFixed(1)} %`;
  $('accuracy').dataset.value = accuracy;
}

/** Trains until it is done or stopped. */
async function train() {
  try {
    await steps();
  } finally {
    isTraining = false;
  }
  await keep();
  await showAccuracy();
  await classify();
  const { steps: made } = await engine.state();
  say(made >= engine.about.stepsInAll ? `Trained. Draw a digit! ${whereItRuns()}` : `Paused at step ${made}.`);
}

async function steps() {
  const times = [];
  let kept = 0;
  if (isTraining) say('Training…');
  while (isTraining) {
    const start = performance.now();
    let losses;
    try {
      losses = await engine.train(CHUNK);
    } catch (error) {
      if (error.name !== 'Interrupted') throw error;
      await replaced(error);
      continue;
    }
    times.push((performance.now() - start) / losses.length);
    curve.add(losses);
    // The first steps compile their kernels.
    const sorted = times.slice(times.length > 2 ? 1 : 0).sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    $('time').textContent = `${median.toFixed(1)} ms`;
    $('time').dataset.value = median;
    kept += losses.length;
    await refresh();
    const { steps: made } = await engine.state();
    if (made >= engine.about.stepsInAll) return;
    if (kept >= KEEP) {
      kept = 0;
      await keep();
      await showAccuracy();
    }
  }
}

/** Does something with the model after what was begun before; a training stops for it. */
function act(action) {
  isTraining = false;
  last = last.then(() => attempt(action));
  return last;
}

/** Says what is drawn, and marks the answer with the drawing it is of. */
async function classify() {
  const version = $('field').dataset.drawn ?? '';
  try {
    await answer();
  } finally {
    $('answer').dataset.of = version;
  }
}

async function answer() {
  drawn = null;
  const { ink, width, height } = field.ink();
  const bars = [...$('bars').children];
  const show = (probabilities) => bars.forEach((bar, digit) => {
    const share = probabilities?.[digit] ?? 0;
    bar.querySelector('meter').value = share;
    bar.querySelector('output').textContent = probabilities ? `${Math.round(100 * share)}%` : '';
  });
  let image;
  try {
    image = await engine.image(ink, width, height);
  } catch (error) {
    if (error.name !== 'Refused') throw error;
    show(null);
    $('answer').textContent = sentence(error.message);
    return;
  }
  const { steps } = await engine.state();
  const { probabilities, digit, isDigit } = await engine.classify(image);
  drawn = image;
  const share = probabilities[digit];
  $('answer').dataset.digit = isDigit ? digit : '';
  if (!isDigit) {
    show(null);
    $('answer').textContent = 'This looks like no digit. Clear the field and draw one, or say below what it is.';
    return;
  }
  show(probabilities);
  const percent = `${Math.round(100 * share)} %`;
  if (steps === 0) $('answer').textContent = 'The network is not trained yet: this is a guess.';
  else if (share < SURE) $('answer').textContent = `Not sure: perhaps a ${digit} (${percent}).`;
  else $('answer').textContent = `It is a ${digit} (${percent}).`;
}

async function teach(digit) {
  const image = drawn;
  if (image === null) return;
  await act(async () => {
    say('Practising on your example…');
    await engine.addExample(image, digit);
    curve.add(await engine.practise(PRACTICE));
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
    curve.set([]);
    await keep();
    await showAccuracy();
    await classify();
    const { steps } = await engine.state();
    say(kind === 'training'
      ? `Loaded ${file.name}: the training is at step ${steps}.`
      : `Loaded the weights of ${file.name}: training starts at step 0 with them.`);
  });
}

async function anew() {
  await act(async () => {
    await engine.anew();
    await store.remove().catch(() => {});
    curve.set([]);
    $('accuracy').textContent = $('time').textContent = '–';
    $('taught').textContent = 'No examples of yours yet.';
    await classify();
    say('A new, untrained network.');
  });
}

/** A file that was dropped or chosen: a checkpoint, or a picture for the field. */
async function take(file) {
  if (!file) return;
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

const field = new Field($('field'), () => attempt(classify));

function wire() {
  for (let digit = 0; digit < 10; digit += 1) {
    const bar = document.createElement('li');
    bar.innerHTML = `<div><meter min="0" max="1" value="0" aria-label="${digit}"></meter><output></output></div>`;
    $('bars').append(bar);
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = digit;
    button.disabled = true;
    button.addEventListener('click', () => teach(digit));
    $('teach').append(button);
  }
  $('train').addEventListener('click', () => {
    if (isTraining) {
      isTraining = false;
      return;
    }
    act(train);
    isTraining = true;
    refresh();
  });
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
  await showDevice();
  await refresh();
  document.body.dataset.ready = String(Math.round(performance.now()));
  say(engine.fallback
    ? `No WebGPU here: ${sentence(engine.fallback)} The network runs on the processor instead, more slowly.`
    : `Ready. ${whereItRuns()}`, engine.fallback !== null);
  const kept = await store.get().catch(() => undefined);
  if (!kept) return;
  await act(async () => {
    await engine.restore(kept);
    curve.set(kept.losses ?? []);
    await showAccuracy();
    const { steps } = await engine.state();
    say(`${$('notice').textContent} The training of your last visit is back, at step ${steps}.`, engine.fallback !== null);
  });
}

begin();

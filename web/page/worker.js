// The model, on a thread of its own. Messages { id, method, args } are answered in order with { id, result } or
// { id, error: { name, message } }. A panic of the module is a RuntimeError: after it the worker is of no use.

import init, { Model } from './griffinfly_web.js';

const loaded = init();
let model = null;

/** What the browser tells about the adapter, which is little. */
async function adapter() {
  const info = (await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' }))?.info;
  return info?.description || [info?.vendor, info?.architecture].filter(Boolean).join(' ');
}

const methods = {
  async open(backend) {
    await loaded;
    model?.free();
    model = null;
    // Asked first: afterwards the answer waits for the kernels to be compiled.
    const name = backend === 'webgpu' ? await adapter() : '';
    model = await Model.open(backend);
    return { ...model.about(), adapter: name };
  },
  async state() {
    const { memory } = await loaded;
    return { ...model.state(), heapBytes: memory.buffer.byteLength };
  },
  image: (ink, width, height) => Model.image(ink, width, height),
  train: (steps) => model.train(steps),
  practise: (steps) => model.practise(steps),
  accuracy: () => model.accuracy(),
  classify: (image) => model.classify(image),
  addExample: (image, digit) => model.addExample(image, digit),
  save: () => model.save(),
  load: (bytes, name) => model.load(bytes, name),
};

async function answer({ id, method, args }) {
  try {
    await loaded;
    if (model === null && method !== 'open') throw new Error('no device is open');
    postMessage({ id, result: await methods[method](...args) });
  } catch (error) {
    postMessage({ id, error: { name: error?.name ?? 'Error', message: error?.message ?? String(error) } });
  }
}

let last = Promise.resolve();
onmessage = ({ data }) => {
  last = last.then(() => answer(data));
};

// `node steps.mjs`: how long training steps take in the browser of the tests, by how many are asked for at once, on WebGPU and on the CPU.
// Prints JSON: milliseconds until the module is there, until a device is open, of the first step (which compiles the kernels), and the
// mean of a step over 64 of them. A report, no test; `cargo xtask web` builds what it times.

import { visit } from './visitor.mjs';

await visit(async ({ page, context }) => {
  const measured = await page.evaluate(async () => {
    const { default: init, Model } = await import('./griffinfly_web.js');
    const timed = async (action) => {
      const start = performance.now();
      const value = await action();
      return [Math.round(10 * (performance.now() - start)) / 10, value];
    };
    const result = { module: (await timed(() => init()))[0] };
    for (const backend of ['webgpu', 'host']) {
      const [open, model] = await timed(() => Model.open(backend));
      const [first] = await timed(() => model.train(1));
      const all = { open, first };
      for (const count of [1, 4, 8]) {
        const [whole] = await timed(async () => {
          for (let done = 0; done < 64; done += count) await model.train(count);
        });
        all[`step, ${count} at once`] = Math.round((10 * whole) / 64) / 10;
      }
      result[backend] = all;
      model.free();
    }
    return result;
  });
  console.log(JSON.stringify({ browser: context.browser()?.version(), milliseconds: measured }, null, 2));
});

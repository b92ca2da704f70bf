// The page as a visitor meets it, and everything that may go wrong there. `cargo xtask web test` runs it over a freshly built site.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  DIGITS, FRAME, PATIENCE, answer, draw, notice, probabilities, ready, says, shown, step, trained, visit,
} from './visitor.mjs';

/** Where screenshot, checkpoint and numbers go. */
const OUT = process.env.GRIFFINFLY_OUT ?? join(import.meta.dirname, '../../target/web/out');
mkdirSync(OUT, { recursive: true });
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const LOST = /lost|device|WebGPU|GPU|context/i;

/** What breaks the rules of accessibility. */
async function violations(page) {
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run());
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
}

const chosen = (name, bytes, mimeType = 'application/octet-stream') => ({ name, mimeType, buffer: Buffer.from(bytes) });

/** A safetensors file of one tensor. */
function safetensors(name, shape) {
  const count = shape.reduce((a, b) => a * b, 1);
  let header = JSON.stringify({ [name]: { dtype: 'F32', shape, data_offsets: [0, 4 * count] } });
  header = header.padEnd(Math.ceil(header.length / 8) * 8);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, Buffer.from(header), Buffer.alloc(4 * count)]);
}

/** Drops a file on the page. */
async function drop(page, { name, mimeType, buffer }) {
  const transfer = await page.evaluateHandle(([bytes, called, type]) => {
    const made = new DataTransfer();
    made.items.add(new File([Uint8Array.from(bytes)], called, { type }));
    return made;
  }, [[...buffer], name, mimeType]);
  await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
}

/** A picture that a function of the page draws. */
const picture = (page, paint) => page.evaluate(async (body) => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 64;
  new Function('c', body)(canvas.getContext('2d'));
  const blob = await new Promise((resolve) => { canvas.toBlob(resolve); });
  return [...new Uint8Array(await blob.arrayBuffer())];
}, paint);

test('trains, reads drawings, learns a hand, saves, loads, and says the same', { timeout: 8 * PATIENCE }, async () => {
  await visit(async ({ page, open }) => {
    await ready(page);
    const interactive = await page.$eval('body', (body) => Number(body.dataset.ready));
    assert.match(await notice(page), /It runs on WebGPU/);
    assert.equal(await page.textContent('#backend'), 'WebGPU');
    assert.deepEqual(await violations(page), []);

    await page.click('#train');
    await says(page, /^Trained/, 3 * PATIENCE);
    const [accuracy, milliseconds] = [await shown(page, 'accuracy'), await shown(page, 'time')];
    assert.ok(accuracy >= 0.975, `${accuracy} of the test images`);
    assert.equal(await step(page), 440);
    assert.match(await page.getAttribute('#curve', 'aria-label'), /440 steps, from 2\.\d+ to 0\.0/);

    for (const digit of [0, 1, 3, 4]) {
      assert.match(await draw(page, DIGITS[digit]), new RegExp(`^(It is|Not sure: perhaps) a ${digit} `), `a drawn ${digit}`);
    }
    // The same digit by the keyboard.
    await page.click('#clear');
    await page.focus('#field');
    await page.keyboard.press(' ');
    for (let i = 0; i < 12; i += 1) await page.keyboard.press('ArrowDown');
    await page.keyboard.press(' ');
    assert.match(await answer(page), /a 1 /);

    await draw(page, DIGITS[3]);
    await page.locator('#notice').scrollIntoViewIfNeeded();
    await page.screenshot({ path: join(OUT, 'page.png') });

    assert.match(await draw(page, FRAME), /looks like no digit/);
    assert.equal((await probabilities(page)).some((share) => share > 0), false);

    // A hand of one's own: the sevens of the data set have a bar, this one has none.
    await draw(page, DIGITS[7]);
    for (let i = 0; i < 4 && (i === 0 || !/^It is a 7/.test(await answer(page))); i += 1) {
      await page.click('#teach button:nth-child(8)');
      await says(page, /^Practised/);
    }
    assert.match(await answer(page), /^It is a 7/);
    const practised = await shown(page, 'accuracy');
    assert.ok(practised >= 0.975, `${practised} of the test images after practice`);
    assert.match(await page.textContent('#taught'), /examples? of yours/);

    const said = async () => {
      await draw(page, DIGITS[7]);
      return probabilities(page);
    };
    const before = await said();
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
    const file = join(OUT, 'digits.safetensors');
    await download.saveAs(file);
    assert.equal(download.suggestedFilename(), 'digits.safetensors');
    const steps = await step(page);

    // Another network says something else; the file makes it say the same again.
    await page.click('#anew');
    await says(page, /untrained/);
    assert.equal(await step(page), 0);
    assert.notDeepEqual(await said(), before);
    await page.setInputFiles('#file', file);
    await says(page, /^Loaded digits\.safetensors: the training is at step/);
    assert.equal(await step(page), steps);
    assert.deepEqual(await said(), before);
    assert.equal(await shown(page, 'accuracy'), practised);

    // So does the next visit.
    await page.close();
    const again = await open();
    await says(again, /training of your last visit is back, at step/);
    assert.equal(await step(again), steps);
    await draw(again, DIGITS[7]);
    assert.deepEqual(await probabilities(again), before);

    const numbers = { interactive_ms: interactive, step_ms: milliseconds, trained_accuracy: accuracy, test_accuracy: practised };
    writeFileSync(join(OUT, 'numbers.json'), JSON.stringify(numbers, null, 2));
    console.log(JSON.stringify(numbers));
    if (process.env.GRIFFINFLY_SPEED === '1') {
      assert.ok(interactive < 2000, `${interactive} ms until the page can be used`);
      assert.ok(milliseconds < 60, `${milliseconds} ms for a step`);
    }
  });
});

test('a file that another device trained is taken', { timeout: 3 * PATIENCE, skip: !process.env.GRIFFINFLY_CHECKPOINT }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    await page.setInputFiles('#file', process.env.GRIFFINFLY_CHECKPOINT);
    await says(page, /^Loaded .*: (the training|training starts)/);
    assert.equal((await shown(page, 'accuracy')).toFixed(5), Number(process.env.GRIFFINFLY_ACCURACY).toFixed(5));
  });
});

test('files that do not fit and pictures that are no digits change nothing', { timeout: 3 * PATIENCE }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await trained(page, 48);
    await page.click('#train');
    await says(page, /^Paused at step/);
    await draw(page, DIGITS[1]);
    const [before, at] = [await probabilities(page), await step(page)];

    await page.setInputFiles('#file', chosen('junk.safetensors', 'no tensors'));
    await says(page, /bytes|header/i);
    await page.setInputFiles('#file', chosen('empty.safetensors', ''));
    await says(page, /too short|0 bytes/i);
    await drop(page, chosen('other.safetensors', safetensors('encoder.weight', [3, 5])));
    await says(page, /other\.safetensors does not fit: .*'conv1\.weight'.*is missing.*'encoder\.weight'.*is not part of the model/);
    assert.equal(await page.$eval('#notice', (element) => element.className), 'bad');

    await drop(page, chosen('blank.png', await picture(page, 'c.fillStyle="#fff";c.fillRect(0,0,64,64)'), 'image/png'));
    assert.match(await answer(page), /nothing drawn/);
    await drop(page, chosen('black.png', await picture(page, 'c.fillRect(0,0,64,64)'), 'image/png'));
    assert.match(await answer(page), /nothing drawn/);
    const board = 'for(let i=0;i<64;i++)if((i+(i>>3))%2)c.fillRect(i%8*8,(i>>3)*8,8,8)';
    await drop(page, chosen('board.png', await picture(page, board), 'image/png'));
    assert.match(await answer(page), /looks like no digit/);
    await drop(page, chosen('broken.png', 'no picture', 'image/png'));
    await says(page, /cannot read/);
    const one = 'c.fillRect(0,0,64,64);c.fillStyle="#eee";c.fillRect(29,8,7,48)';
    await drop(page, chosen('one.png', await picture(page, one), 'image/png'));
    assert.match(await answer(page), /a 1 /);

    await draw(page, DIGITS[1]);
    assert.deepEqual(await probabilities(page), before);
    assert.equal(await step(page), at);
    await page.click('#train');
    await trained(page, at + 8);
  });
});

test('a lost device is replaced, and the training goes on', { timeout: 4 * PATIENCE }, async () => {
  await visit(async ({ page, context }) => {
    await ready(page);
    await page.click('#train');
    await trained(page, 60);
    const browser = await context.newCDPSession(page);
    await browser.send('Browser.crashGpuProcess').catch(() => {});
    await says(page, /device was lost: .* The training goes on from step [1-9]/);
    await page.waitForSelector('#train:has-text("Pause")');
    await says(page, /^Trained/, 3 * PATIENCE);
    assert.ok(await shown(page, 'accuracy') >= 0.975);
    assert.equal(await step(page), 440);
    assert.match(await draw(page, DIGITS[0]), /a 0 /);
  }, { expected: LOST });
});

test('a worker that breaks down is replaced', { timeout: 3 * PATIENCE }, async () => {
  // The first worker breaks down, those after it do not.
  let broken = false;
  const prepare = (page) => page.route('**/worker.js', async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const breaks = "if (model.state().steps === 32) throw new WebAssembly.RuntimeError('unreachable');";
    const body = text.replace('train: (steps) => model.train(steps)',
      `train: (steps) => { ${breaks} return model.train(steps); }`);
    assert.notEqual(body, text);
    await route.fulfill({ response, body: broken ? text : body });
    broken = true;
  });
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await says(page, /device was lost: unreachable\..* from step 24/i);
    await trained(page, 64);
    assert.match(await page.getAttribute('#curve', 'aria-label'), /^The loss of (64|72|80|88) steps/);
  }, { prepare });
});

test('a tab that is closed while it trains loses nothing it kept', { timeout: 3 * PATIENCE }, async () => {
  await visit(async ({ page, open }) => {
    await ready(page);
    await page.click('#train');
    await trained(page, 70);
    await page.close();
    const again = await open();
    await says(again, /training of your last visit is back, at step/);
    const at = await step(again);
    assert.ok(at >= 40 && at % 8 === 0, `step ${at}`);
    assert.match(await again.getAttribute('#curve', 'aria-label'), new RegExp(`${at} steps`));
    await again.click('#train');
    await trained(again, at + 16);
  });
});

test('without WebGPU the processor does it, and the page says so', { timeout: 3 * PATIENCE }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    assert.match(await notice(page), /^No WebGPU here: .*runs on the processor/);
    assert.match(await page.textContent('#backend'), /Processor/);
    await page.click('#train');
    await says(page, /^Trained/, 3 * PATIENCE);
    assert.ok(await shown(page, 'accuracy') >= 0.975);
    assert.match(await draw(page, DIGITS[0]), /a 0 /);
  }, { webgpu: false, expected: /gpu/i });
});

/** The page with code in front of its worker's. */
const beforeWorker = (code) => (page) => page.route('**/worker.js', async (route) => {
  const response = await route.fetch();
  await route.fulfill({ response, body: code + (await response.text()) });
});

for (const [name, code, said] of [
  ['no adapter', 'GPU.prototype.requestAdapter = async () => null;', /No WebGPU here/],
  ['an adapter below the limits',
    `const limit = Object.getOwnPropertyDescriptor(GPUSupportedLimits.prototype, 'maxStorageBuffersPerShaderStage');
     Object.defineProperty(GPUSupportedLimits.prototype, 'maxStorageBuffersPerShaderStage', { ...limit, get: () => 4 });`,
    /No WebGPU here: .*4 storage buffers per stage, 8 are needed/],
  ['a device that is refused', 'GPUAdapter.prototype.requestDevice = async () => { throw new TypeError("not today"); };',
    /No WebGPU here: .*not today/],
]) {
  test(`${name}: a clear notice, and the processor`, { timeout: 2 * PATIENCE }, async () => {
    await visit(async ({ page }) => {
      await ready(page);
      await says(page, said);
      await page.click('#train');
      await trained(page, 16);
    }, { prepare: beforeWorker(code), expected: LOST });
  });
}

test('a browser that keeps nothing is told once, and the rest works', { timeout: 2 * PATIENCE }, async () => {
  const prepare = (page) => page.addInitScript(() => {
    IDBFactory.prototype.open = () => { throw new DOMException('not in private windows', 'SecurityError'); };
  });
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await says(page, /does not keep the training.*not in private windows/);
    await trained(page, 40);
    await page.click('#train');
    await page.waitForSelector('#train:has-text("Go on")');
  }, { prepare });
});

test('narrow and dark screens show everything', { timeout: 2 * PATIENCE }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    await page.setViewportSize({ width: 320, height: 640 });
    await page.emulateMedia({ colorScheme: 'dark' });
    const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= seen, `${wide} points wide in ${seen}`);
    assert.deepEqual(await violations(page), []);
  });
});

test('every kernel of the library is accepted', { timeout: 4 * PATIENCE, skip: !process.env.GRIFFINFLY_WGSL }, async () => {
  const folder = process.env.GRIFFINFLY_WGSL;
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  assert.ok(texts.length > 300, `${texts.length} kernels`);
  await visit(async ({ page }) => {
    await ready(page);
    const faults = await page.evaluate(async (all) => {
      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      const found = [];
      for (const code of all) {
        device.pushErrorScope('validation');
        const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
        await device.popErrorScope();
        const errors = messages.filter(({ type }) => type === 'error');
        if (errors.length) found.push(`${code.split('\n')[0]}: ${errors[0].lineNum}: ${errors[0].message}`);
      }
      return found;
    }, texts);
    assert.deepEqual(faults, []);
  });
});

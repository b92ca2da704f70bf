// The page as a visitor meets it, and everything that may go wrong there. `cargo xtask web test` runs it over a freshly built site.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  DIGITS, FRAME, PATIENCE, answer, draw, notice, paint, probabilities, ready, says, shown, step, trained, visit,
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

/** The page with another text of one of its scripts: `edit` gets the text, and how often it was asked for before. */
function scripted(name, edit) {
  let count = 0;
  return (page) => page.route(`**/${name}`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: edit(await response.text(), count) });
    count += 1;
  });
}

/** A text with another part in the place of one that it has. */
function swapped(text, part, other) {
  assert.ok(text.includes(part), part);
  return text.replace(part, other);
}

const BREAKS_DOWN = "throw new WebAssembly.RuntimeError('unreachable');";

/** The page whose first worker breaks down in a method, at a step; those after it do not. */
const breakingDown = (method, body, at) => scripted('worker.js', (text, count) => (count > 0 ? text
  : swapped(text, `${method} => ${body}`, `${method} => { if (model.state().steps === ${at}) ${BREAKS_DOWN} return ${body}; }`)));

/** Drops a file on the page. */
async function drop(page, { name, mimeType, buffer }) {
  const transfer = await page.evaluateHandle(([bytes, called, type]) => {
    const made = new DataTransfer();
    made.items.add(new File([Uint8Array.from(bytes)], called, { type }));
    return made;
  }, [[...buffer], name, mimeType]);
  await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
}

/** Drops a picture and waits for the answer to it, which takes the time to decode it. */
async function show(page, name, bytes) {
  const before = await page.$eval('#field', (field) => field.dataset.drawn);
  await drop(page, chosen(name, bytes, 'image/png'));
  await page.waitForFunction((drawn) => document.getElementById('field').dataset.drawn !== drawn, before);
  return answer(page);
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
    for (const id of ['memory', 'heap']) assert.match(await page.textContent(`#${id}`), /^[1-9][\d.]* MiB$/);
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
    // And the file, in a page that has made nothing.
    await again.click('#anew');
    await says(again, /untrained/);
    await again.reload();
    await ready(again);
    await again.setInputFiles('#file', file);
    await says(again, /^Loaded digits\.safetensors: the training is at step/);
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
    const huge = await page.evaluateHandle(() => {
      const made = new DataTransfer();
      made.items.add(new File([new ArrayBuffer((64 << 20) + 1)], 'huge.safetensors'));
      return made;
    });
    await page.dispatchEvent('body', 'drop', { dataTransfer: huge });
    await says(page, /huge\.safetensors is too large/);
    await drop(page, chosen('other.safetensors', safetensors('encoder.weight', [3, 5])));
    await says(page, /other\.safetensors does not fit: .*'conv1\.weight'.*is missing.*'encoder\.weight'.*is not part of the model/);
    assert.equal(await page.$eval('#notice', (element) => element.className), 'bad');

    assert.match(await show(page, 'blank.png', await picture(page, 'c.fillStyle="#fff";c.fillRect(0,0,64,64)')), /nothing drawn/);
    assert.match(await show(page, 'black.png', await picture(page, 'c.fillRect(0,0,64,64)')), /nothing drawn/);
    const board = 'for(let i=0;i<64;i++)if((i+(i>>3))%2)c.fillRect(i%8*8,(i>>3)*8,8,8)';
    assert.match(await show(page, 'board.png', await picture(page, board)), /looks like no digit/);
    await drop(page, chosen('broken.png', 'no picture', 'image/png'));
    await says(page, /cannot read/);
    const one = 'c.fillRect(0,0,64,64);c.fillStyle="#eee";c.fillRect(29,8,7,48)';
    assert.match(await show(page, 'one.png', await picture(page, one)), /a 1 /);

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
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await says(page, /program broke down: unreachable\..* The training goes on from step 24\./);
    await trained(page, 64);
    assert.match(await page.getAttribute('#curve', 'aria-label'), /^The loss of (64|72|80|88) steps/);
  }, { prepare: breakingDown('train: (steps)', 'model.train(steps)', 32) });
});

test('a worker that breaks down between two steps is replaced too', { timeout: 2 * PATIENCE }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await says(page, /program broke down: unreachable\..* The training goes on from step 24\./);
    await trained(page, 64);
  }, { prepare: breakingDown('save: ()', 'model.save()', 48) });
});

test('one starts anew although the worker breaks down, on what there is then', { timeout: 2 * PATIENCE }, async () => {
  // The first worker opens one device only, and those after it find no adapter.
  const prepare = scripted('worker.js', (text, count) => (count > 0 ? `GPU.prototype.requestAdapter = async () => null;${text}`
    : swapped(text, 'async open(backend) {', `async open(backend) { if (model) ${BREAKS_DOWN}`)));
  await visit(async ({ page }) => {
    await ready(page);
    assert.equal(await page.textContent('#backend'), 'WebGPU');
    await page.click('#train');
    await trained(page, 16);
    await page.click('#anew');
    await says(page, /untrained network\. It runs on the processor\./);
    assert.match(await page.textContent('#backend'), /Processor/);
    assert.equal(await step(page), 0);
    await page.click('#train');
    await trained(page, 16);
  }, { prepare, expected: LOST });
});

test('what is clicked while it trains is done', { timeout: 3 * PATIENCE }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await trained(page, 16);
    await page.dblclick('#train');
    await says(page, /^Paused at step/);
    assert.equal(await page.textContent('#train'), 'Go on');
    const at = await step(page);
    await page.click('#train');
    await trained(page, at + 8);

    // Teaching waits for the steps under way alone, whatever the button is told meanwhile.
    await draw(page, DIGITS[7]);
    await page.waitForSelector('#teach button:nth-child(8):enabled');
    await page.evaluate(() => {
      for (const place of ['#teach button:nth-child(8)', '#train']) document.querySelector(place).click();
    });
    await says(page, /^Practised/);
    assert.ok(await step(page) < 400, `practised at step ${await step(page)}`);
    assert.equal(await page.textContent('#train'), 'Go on');
  });
});

test('the answer is to what was drawn last', { timeout: 2 * PATIENCE }, async () => {
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await trained(page, 16);
    await paint(page, DIGITS[1]);
    await page.click('#clear');
    assert.match(await answer(page), /nothing drawn/);
    // By then an answer to the strokes would have come.
    await trained(page, (await step(page)) + 24);
    assert.match(await page.textContent('#answer'), /nothing drawn/);
    assert.equal((await probabilities(page)).some((share) => share > 0), false);

    // The pen of the keyboard is seen; whoever leaves the field with the pen down has drawn a stroke.
    await page.focus('#field');
    await page.keyboard.press(' ');
    for (let i = 0; i < 12; i += 1) await page.keyboard.press('ArrowDown');
    assert.ok(await page.isVisible('#pen'));
    await page.keyboard.press('Tab');
    assert.doesNotMatch(await answer(page), /nothing drawn/);
    assert.ok(await page.isHidden('#pen'));
    const isLeftAlone = await page.$eval('#field', (field) =>
      field.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', altKey: true, cancelable: true })));
    assert.ok(isLeftAlone, 'Alt and an arrow are the browser\'s');
  });
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

test('what is begun before the last visit is back is not overwritten by it', { timeout: 3 * PATIENCE }, async () => {
  // The browser finds what it kept when the test says so.
  const prepare = scripted('store.js', (text) => swapped(text, 'export const get = () => transact(',
    'export const get = async () => await new Promise((go) => { globalThis.find = go; }) ?? transact('));
  await visit(async ({ page, open }) => {
    await ready(page);
    await page.click('#train');
    await trained(page, 32);
    await page.close();
    const again = await open();
    await ready(again);
    await again.click('#train');
    await trained(again, 8);
    await again.evaluate(() => globalThis.find());
    await trained(again, (await step(again)) + 16);
    await again.click('#train');
    await says(again, /^Paused at step .* The training of your last visit was not brought back/);
    const at = await step(again);
    assert.match(await again.getAttribute('#curve', 'aria-label'), new RegExp(`^The loss of ${at} steps, from 2\\.`));
  }, { prepare });
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
const beforeWorker = (code) => scripted('worker.js', (text) => code + text);

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

test('a browser that keeps nothing is told as long as that is so, and the rest works', { timeout: 2 * PATIENCE }, async () => {
  const prepare = (page) => page.addInitScript(() => {
    const { open } = IDBFactory.prototype;
    globalThis.isPrivate = true;
    IDBFactory.prototype.open = function openUnlessPrivate(...args) {
      if (globalThis.isPrivate) throw new DOMException('not in private windows', 'SecurityError');
      return open.apply(this, args);
    };
  });
  await visit(async ({ page }) => {
    await ready(page);
    await page.click('#train');
    await page.waitForSelector('#unkept:has-text("not in private windows")');
    await trained(page, 40);
    await page.click('#train');
    await says(page, /^Paused at step/);
    assert.equal(await page.textContent('#train'), 'Go on');
    assert.match(await page.textContent('#unkept'), /does not keep the training .*not in private windows.*: save it as a file/);
    await page.evaluate(() => { globalThis.isPrivate = false; });
    await page.click('#train');
    await page.waitForSelector('#unkept:empty', { state: 'attached' });
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

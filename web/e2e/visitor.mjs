// What a visitor does and sees: a page opened in a browser of its own, strokes on the field, files, what the page says.

import { chromium } from 'playwright-core';
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from './server.mjs';

/** The folder that `cargo xtask web` fills. */
const SITE = process.env.GRIFFINFLY_SITE ?? join(import.meta.dirname, '../../target/web/site');
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const BROWSER = process.env.CHROMIUM ?? PLACES.find((path) => existsSync(path));
/** Nothing is asked of the network, and the tests run as root too. */
const QUIET = ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic',
  '--no-first-run'];
const WEBGPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
/** How long anything may take that is no training of its own. */
export const PATIENCE = 60_000;

/** Runs a visit: `act` gets the page and what belongs to it. Errors in the page's console fail it, but those that match `expected`; an
 * exception that nothing caught ends it at once. */
export async function visit(act, { webgpu = true, prepare, expected = /$^/ } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'griffinfly-visit-'));
  const server = await serve(SITE);
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: BROWSER,
    headless: true,
    args: webgpu ? [...QUIET, ...WEBGPU] : [...QUIET, '--disable-features=WebGPU'],
    viewport: { width: 1100, height: 900 },
    acceptDownloads: true,
  });
  const faults = [];
  let end;
  const uncaught = new Promise((_, reject) => { end = reject; });
  // It may come before the race below begins.
  uncaught.catch(() => {});
  try {
    const open = async () => {
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE);
      page.on('pageerror', end);
      page.on('console', (message) => {
        if (message.type() === 'error' && !expected.test(message.text())) faults.push(message.text());
      });
      await prepare?.(page, context);
      await page.goto(server.address);
      return page;
    };
    const page = await open();
    await Promise.race([uncaught, act({ page, open, context, address: server.address })]);
    assert.deepEqual(faults, []);
  } finally {
    await context.close();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What the page says. */
export const notice = (page) => page.textContent('#notice');

/** Waits until the page says something that matches. */
export async function says(page, pattern, timeout = PATIENCE) {
  try {
    await page.waitForFunction(
      ([source, flags]) => new RegExp(source, flags).test(document.getElementById('notice').textContent),
      [pattern.source, pattern.flags],
      { timeout },
    );
  } catch (error) {
    throw new Error(`the page does not say ${pattern} but: ${await notice(page)}`, { cause: error });
  }
}

export const ready = (page) => page.waitForSelector('body[data-ready]');

/** Number of the step the page shows. */
export const step = async (page) => Number.parseInt(await page.textContent('#step'), 10);

/** Waits until so many steps are made. */
export const trained = (page, steps, timeout = PATIENCE) =>
  page.waitForFunction((least) => Number.parseInt(document.getElementById('step').textContent, 10) >= least, steps, { timeout });

/** Numbers the page shows with more digits than it prints. */
export const shown = (page, id) => page.$eval(`#${id}`, (element) => Number(element.dataset.value));

/** Draws strokes, each a list of points from 0 to 1, with the pointer. */
export async function paint(page, strokes) {
  const field = page.locator('#field');
  await field.scrollIntoViewIfNeeded();
  const box = await field.boundingBox();
  const place = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  for (const stroke of strokes) {
    await page.mouse.move(...place(stroke[0]));
    await page.mouse.down();
    for (const point of stroke.slice(1)) await page.mouse.move(...place(point), { steps: 4 });
    await page.mouse.up();
  }
}

/** Draws strokes on the empty field, and waits for the answer. */
export async function draw(page, strokes) {
  await page.click('#clear');
  await paint(page, strokes);
  return answer(page);
}

/** What the page says to the drawing, once it does. */
export async function answer(page) {
  await page.waitForFunction(() => document.getElementById('answer').dataset.of === document.getElementById('field').dataset.drawn);
  return page.textContent('#answer');
}

/** The probabilities the page shows. */
export const probabilities = (page) => page.$$eval('#bars meter', (meters) => meters.map((meter) => meter.value));

const circle = ([x, y], [rx, ry], from = 0, to = 1, points = 24) => Array.from({ length: points + 1 }, (_, i) => {
  const angle = 2 * Math.PI * (from + ((to - from) * i) / points);
  return [x + rx * Math.sin(angle), y - ry * Math.cos(angle)];
});

/** Digits as one may draw them. */
export const DIGITS = {
  0: [circle([0.5, 0.5], [0.22, 0.35])],
  1: [[[0.38, 0.3], [0.52, 0.15], [0.52, 0.85]]],
  3: [[...circle([0.48, 0.32], [0.18, 0.17], -0.2, 0.45), ...circle([0.48, 0.67], [0.2, 0.18], 0.05, 0.72)]],
  4: [[[0.48, 0.15], [0.28, 0.55], [0.72, 0.55]], [[0.6, 0.38], [0.6, 0.86]]],
  7: [[[0.3, 0.17], [0.7, 0.17], [0.45, 0.85]]],
};
/** What is no digit. */
export const FRAME = [[[0.06, 0.06], [0.94, 0.06], [0.94, 0.94], [0.06, 0.94], [0.06, 0.06]], [[0.06, 0.06], [0.94, 0.94]],
  [[0.94, 0.06], [0.06, 0.94]]];

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { openBrowser } from '../../test/support/chromium.ts';
import { boundedFigure, type Figure, inMs, median } from '../figure.ts';
import { startServerProcess } from '../server-process.ts';

const rounds = 7;
const eventsPerSecond = 500;
const streamMs = 6000;
const [contentBoundMs, inputBoundMs, leastFrames] = [1000, 100, 30];

/** Measures the dashboard of a server with 10,000 sandboxes and 1,000 conversations, in Chromium. */
export async function* benchDashboard(): AsyncGenerator<Figure> {
  execFileSync(process.execPath, ['build.ts', 'dashboard'], { cwd: join(import.meta.dirname, '../..') });
  await using server = await startServerProcess('dashboard/server.ts', 'begin');
  const { url, key } = server.listening;
  await using browser = await openBrowser();
  await using context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addInitScript(`if (location.protocol !== 'about:') localStorage.setItem('skep.key', ${JSON.stringify(key)})`);
  const note = `${rounds} rounds, in turn; a new tab each time, files in the browser's cache`;

  for (const [place, content] of [['sandboxes', 'sb-9999'], ['conversations', 'Title 999']] as const) {
    const times = { page: [] as number[], empty: [] as number[] };
    for (let round = -1; round < rounds; round += 1) {
      const page = await firstContent(() => context.newPage(), `${url}/#/${place}`, (opened) => opened.getByRole('link', { name: content }).waitFor());
      const empty = await firstContent(() => context.newPage(), `${url}/health`, async () => {});
      if (round < 0) continue;
      times.page.push(page);
      times.empty.push(empty);
    }
    const texts = {
      name: `the dashboard's ${place}, until they are shown`, measured: inMs(median(times.page)),
      reference: `${inMs(contentBoundMs)}; an empty page ${inMs(median(times.empty))}`, note,
    };
    yield boundedFigure(texts, median(times.page) / contentBoundMs, { atMost: 1 });
  }

  const page = await context.newPage();
  await page.goto(`${url}/#/conversations`);
  await page.getByRole('searchbox').pressSequentially('Title 99', { delay: 100 });
  await page.getByRole('link', { name: 'Title 998' }).waitFor();
  const slow: number[] = await page.evaluate(slowKeys);
  const slowest = Math.max(16, ...slow);
  yield boundedFigure({
    name: 'the dashboard, from a key to the next paint', measured: `${inMs(slowest)} at most`,
    reference: inMs(inputBoundMs), note: 'typed into the search of 1,000 conversations; the browser tells of none below 16 ms',
  }, slowest / inputBoundMs, { atMost: 1 });

  await page.goto(`${url}/#/conversations/conv-0`);
  server.child.send(eventsPerSecond);
  await page.getByText('of what the agent says').first().waitFor();
  const drawn: number = await page.evaluate(frames);
  server.child.send(0);
  yield boundedFigure({
    name: `the dashboard while ${eventsPerSecond} events a second come`, measured: `${drawn.toFixed(0)} frames a second`,
    reference: `${leastFrames} frames a second`, note: `${streamMs / 1000} s of one message that grows`,
  }, drawn / leastFrames, { atLeast: 1 });
}

async function firstContent(open: () => Promise<Page>, address: string, shown: (page: Page) => Promise<void>): Promise<number> {
  const page = await open();
  const begun = performance.now();
  await page.goto(address);
  await shown(page);
  const ms = performance.now() - begun;
  await page.close();
  return ms;
}

/** Returns how long slow keys took until the next paint, as the browser measures it. The browser reports none below 16 ms. */
const slowKeys = `new Promise((resolve) => {
  const entries = [];
  new PerformanceObserver((list) => entries.push(...list.getEntries())).observe({ type: 'event', buffered: true, durationThreshold: 16 });
  setTimeout(() => resolve(entries.filter(({ name }) => name === 'keydown').map(({ duration }) => duration)), 500);
})`;

/** Returns the number of frames per second. */
const frames = `new Promise((resolve) => {
  const begun = performance.now();
  let count = 0;
  const draw = () => {
    count += 1;
    const passed = performance.now() - begun;
    if (passed < ${streamMs}) requestAnimationFrame(draw);
    else resolve((count * 1000) / passed);
  };
  requestAnimationFrame(draw);
})`;

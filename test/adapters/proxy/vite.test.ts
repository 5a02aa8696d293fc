import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SpecOptions } from '../../../src/composition/index.ts';
import { describeWithChromium, openBrowser, openContext } from '../../support/chromium.ts';
import { createWorld, type World } from './world.ts';

const vite = fileURLToPath(new URL('bin/vite.js', import.meta.resolve('vite/package.json')));
const page = '<!doctype html><title>app</title><p>not yet</p><script type="module" src="./main.js"></script>';
const main = `import { text } from './text.js';
const show = (text) => { document.querySelector('p').textContent = text; };
show(text);
import.meta.hot.accept('./text.js', (changed) => show(changed.text));`;

/** A spec that runs the command of Vite, with the options that a user would choose. */
function viteSpec(id: string, options: string, keepPrefix: boolean): SpecOptions {
  const files = { 'index.html': page, 'main.js': main, 'text.js': 'export const text = "first";' };
  const writes = Object.entries(files).map(([name, content]) => `cat > ${name} <<'END'\n${content}\nEND\n`).join('');
  const command = `${writes}exec '${process.execPath}' '${vite}' --host 127.0.0.1 --strictPort --port "$SKEP_PORT_8000" ${options}`;
  return {
    id, command: ['sh', '-c', command], ports: [{ name: 'WEB', port: 8000, keep_prefix: keepPrefix }], ready: { tcp: true, port: 8000, within: '60s' },
  };
}

describeWithChromium('a development server with hot reload', () => {
  let browser: Browser;
  let world: World;
  beforeAll(async () => {
    const specs = [viteSpec('by-host', '', false), viteSpec('by-path', '--base "/$SKEP_SANDBOX_ID/8000/"', true)];
    world = await createWorld({ specs });
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await world.close();
  });

  test.each(['by-host', 'by-path'])('%s changes the page after a change of a file, without a reload', async (spec) => {
    const { id } = await world.start(spec);
    const link = await world.link(id);
    const page = await (await openContext(browser)).newPage();
    const connected = page.waitForEvent('console', { predicate: (message) => message.text().includes('[vite] connected') });
    await page.goto(spec === 'by-host' ? link : `${world.proxy.url}/${id}/8000/${new URL(link).search}`);
    await page.getByText('first').waitFor();
    await connected;
    await page.evaluate('globalThis.isTheSamePage = true');
    // The file is replaced atomically, as editors do it, since a watcher could read a half-written file as empty.
    const command = ['sh', '-c', `echo 'export const text = "second";' > changed && mv changed text.js`];
    const { status } = await world.ann('POST', `/api/v1/sandboxes/${id}/executions`, { command });
    expect(status).toBe(201);
    await page.getByText('second').waitFor();
    expect(await page.evaluate('globalThis.isTheSamePage')).toBe(true);
  });
});

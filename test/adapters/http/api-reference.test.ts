import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createRouter } from '../../../src/adapters/http/index.ts';
import { describeWithChromium, openBrowser, openContext, pageLimitMs } from '../../support/chromium.ts';
import { createWorld, startWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await createWorld({ server: { publicUrl: 'https://skep.example.org' } });
});
afterAll(() => world.close());

describe('the API reference', () => {
  test('loads only its own files, by relative URLs', async () => {
    const page = await fetch(`${world.url}/docs`);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const policy = page.headers.get('content-security-policy');
    expect(policy).toMatch(/^default-src 'none';script-src 'self' 'sha256-[\w+/]+=';.*connect-src 'self';/);
    const html = await page.text();
    const addresses = [...html.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, address]) => address);
    expect(addresses).toEqual(['data:,', 'docs/swagger-ui.css', 'openapi.json', 'docs/swagger-ui-bundle.js']);
  });

  test.each([
    ['/docs/swagger-ui.css', 'text/css'],
    ['/docs/swagger-ui-bundle.js', 'text/javascript'],
  ])('serves %s without a key, with revalidation, and logs the request', async (path, media) => {
    const file = await fetch(`${world.url}${path}`);
    expect(file.status).toBe(200);
    expect(file.headers.get('content-type')).toMatch(media);
    expect(file.headers.get('cache-control')).toBe('no-cache');
    expect(file.headers.get('x-content-type-options')).toBe('nosniff');
    expect((await file.text()).length).toBeGreaterThan(100_000);
    const known = { 'If-None-Match': file.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' };
    const again = await fetch(`${world.url}${path}`, { headers: known });
    expect(again.status).toBe(304);
    expect(world.lines.findLast(({ message }) => message === 'request')).toMatchObject({ path, status: 304 });
  });

  const others = ['package.json', 'index.html', 'swagger-ui-bundle.js.map', 'x', '%2e%2e/package.json'];
  test.each(others)('does not serve other files of its package: /docs/%s', async (name) => {
    expect((await fetch(`${world.url}/docs/${name}`, { headers: { 'X-Session-API-Key': world.keys.ann } })).status).toBe(404);
  });

  test.each(['', '/agents'])('mounted at "%s", redirects from /docs/ to /docs without a key', async (mount) => {
    const host = express().use(mount, createRouter(world.skep)).listen(0, '127.0.0.1');
    await once(host, 'listening');
    try {
      const origin = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
      const page = await fetch(`${origin}${mount}/docs/`);
      expect([page.status, page.url]).toEqual([200, `${origin}${mount}/docs`]);
    } finally {
      host.close();
      host.closeAllConnections();
    }
  });

  test('is the same page for every deployment', async () => {
    const other = await startWorld({ server: { product: `<b onclick="x">&'` } });
    expect(await (await fetch(`${other.url}/docs`)).text()).toBe(await (await fetch(`${world.url}/docs`)).text());
  });
});

/** Waits until the page shows `count` operations. */
async function shown(page: Page, count: number): Promise<void> {
  await expect.poll(() => page.locator('.opblock').count(), { timeout: pageLimitMs }).toBe(count);
}

describeWithChromium('the API reference in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  /** Opens the page, and records its requests and errors. */
  async function opened(address: string): Promise<{ page: Page; requested: string[]; complaints: string[] }> {
    const page = await (await openContext(browser)).newPage();
    const requested: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requested.push(request.url()));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(address);
    return { page, requested, complaints };
  }

  test.each(['', '/agents'])('mounted at "%s", shows, finds and calls operations of its own server only', async (mount) => {
    const app = express().use('/agents', createRouter(world.skep));
    const host = app.listen(0, '127.0.0.1');
    await once(host, 'listening');
    const origin = mount === '' ? world.url : `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
    try {
      const { page, requested, complaints } = await opened(`${origin}${mount}/docs`);
      const { paths } = (await (await fetch(`${world.url}/openapi.json`)).json()) as { paths: Readonly<Record<string, object>> };
      const count = Object.values(paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0);
      await shown(page, count);

      await page.locator('.operation-filter-input').fill('Check that the server');
      await shown(page, 1);
      expect(await page.locator('.opblock-summary-path').textContent()).toMatch(/health/);

      await page.locator('.opblock-summary-control').click();
      await page.locator('.try-out__btn').click();
      await page.locator('.execute').click();
      const answer = page.locator('.live-responses-table tbody .response-col_description').first();
      expect(await answer.textContent()).toMatch(/"status": "ok"/);
      expect(requested.at(-1)).toBe(`${origin}${mount}/health`);
      expect(requested.filter((url) => !url.startsWith(`${origin}${mount}/`) && !url.startsWith('data:'))).toEqual([]);
      expect(complaints).toEqual([]);
    } finally {
      host.close();
      host.closeAllConnections();
    }
  });

  test('sends the key that was entered', async () => {
    const { page, complaints } = await opened(`${world.url}/docs`);
    await page.locator('.btn.authorize').click();
    await page.locator('.auth-container input').fill(world.keys.ann);
    await page.locator('.auth-btn-wrapper .authorize').click();
    await page.locator('.auth-btn-wrapper .btn-done').click();
    await page.locator('.operation-filter-input').fill('search_sandboxes');
    await shown(page, 1);
    await page.locator('.opblock-summary-control').click();
    await page.locator('.try-out__btn').click();
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().includes('/api/v1/sandboxes/search')),
      page.locator('.execute').click(),
    ]);
    expect(answer.status()).toBe(200);
    expect(complaints).toEqual([]);
  });
});

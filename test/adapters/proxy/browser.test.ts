import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWithChromium, openBrowser, openContext } from '../../support/chromium.ts';
import { createWorld, type World } from './world.ts';

describeWithChromium('the proxy in a browser', () => {
  let browser: Browser;
  let world: World;
  let id: string;
  /** A server on another port of the host, like the API. It records the cookies that it gets. */
  let bystander: Server;
  const noted: string[] = [];
  beforeAll(async () => {
    world = await createWorld();
    ({ id } = await world.start());
    bystander = createServer((request, response) => {
      noted.push(request.headers.cookie ?? 'none');
      response.end('ok');
    }).listen(0, '127.0.0.1');
    await once(bystander, 'listening');
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser.close();
    bystander.close();
    bystander.closeAllConnections();
    await world.close();
  });

  /** The link, by path instead of by host. */
  const byPath = (link: string): string => `${world.proxy.url}/${id}/8000/${new URL(link).search}`;

  async function opened(address: string): Promise<Page> {
    const page = await (await openContext(browser)).newPage();
    await page.goto(address);
    return page;
  }

  test.each([['by host', (link: string) => link], ['by path', byPath]])('serves a page, its assets, a WebSocket and an upload after a link %s', async (_, address) => {
    const page = await opened(address(await world.link(id)));
    expect(page.url()).not.toContain('skep_link');
    await page.getByText('socket hello').waitFor();
    await page.getByText('upload 100000').waitFor();
    expect(await page.evaluate('getComputedStyle(document.querySelector("h1")).color')).toBe('rgb(1, 2, 3)');
    const [cookie, ...others] = await page.context().cookies();
    expect([cookie?.httpOnly, cookie?.sameSite, others]).toEqual([true, 'Lax', []]);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.reload();
    await page.getByText('socket hello').waitFor();
  });

  test('sends the cookie to no other sandbox and no other port of the host, and a page cannot call the API', async () => {
    const { id: other } = await world.start();
    const page = await opened(byPath(await world.link(id)));
    const statusOf = async (url: string): Promise<number> =>
      await page.evaluate(async (target) => (await fetch(target, { credentials: 'include' })).status, url);
    expect(await statusOf(`/${id}/8000/style.css`)).toBe(200);
    expect(await statusOf(`/${id}/8001/`)).toBe(401);
    expect(await statusOf(`/${other}/8000/`)).toBe(401);
    for (const path of ['/api/v1/sandboxes', '/api/v1/me']) {
      await expect(page.evaluate(async (target) => (await fetch(target, { credentials: 'include' })).status, `${world.api.url}${path}`)).rejects.toThrow('Failed to fetch');
    }
    const { port } = bystander.address() as AddressInfo;
    await page.evaluate(async (target) => void (await fetch(target, { credentials: 'include', mode: 'no-cors' })), `http://127.0.0.1:${port}/`);
    await page.goto(`http://127.0.0.1:${port}/`);
    expect(new Set(noted)).toEqual(new Set(['none']));
    await world.ann('DELETE', `/api/v1/sandboxes/${other}`);
  });

  test('refuses requests and WebSockets from a page of another origin', async () => {
    const page = await opened(byPath(await world.link(id)));
    const before = await world.received(id);
    const { port } = bystander.address() as AddressInfo;
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.evaluate(async (target) => void (await fetch(target, { method: 'POST', credentials: 'include', mode: 'no-cors', body: 'forged' })), `${world.proxy.url}/${id}/8000/upload`);
    const closed = await page.evaluate(async (target) => await new Promise((resolve) => new WebSocket(target).addEventListener('close', () => resolve('closed'))), `${world.proxy.url.replace('http', 'ws')}/${id}/8000/`);
    expect(closed).toBe('closed');
    expect((await world.received(id)).slice(before.length)).not.toContain('forged');
  });

  test('shows the command for a link to a visitor without one', async () => {
    const page = await opened(`${world.proxy.url}/${id}/8000/`);
    expect(await page.textContent('body')).toContain('skep open');
  });
});

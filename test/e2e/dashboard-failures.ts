import type { Request } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';

const isStart = (request: Request) => request.url().endsWith('/sandboxes');

/** Tests of what follows the server and can't for a while. */
export function dashboardFailures(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  const page530 = { status: 530, contentType: 'text/html', body: '<title>Tunnel error</title>' };

  test('a conversation stays usable while a proxy answers its stream, says so, and goes on without a gap', async () => {
    const { scene } = opened();
    const { id } = await scene.client.conversations.start({});
    await using page = await scene.page('nothing');
    await page.getByText('There is no such page').waitFor();
    await page.route(/\/events\/stream/, (route) => route.fulfill(page530));
    await page.goto(`${scene.url}/#/conversations/${id}`);
    const notice = page.getByText('Not up to date: The response with status 530');
    await notice.waitFor();
    await page.getByLabel('Message').fill('Are you there?');
    await page.getByRole('button', { name: 'Send' }).click();
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('');
    await page.unroute(/\/events\/stream/);
    await page.locator('.said.agent').getByText('heard: Are you there?').waitFor();
    expect(await notice.count()).toBe(0);
  });

  test('a list says that it can’t follow changes, and shows them later', async () => {
    const { scene } = opened();
    await using page = await scene.page('nothing');
    await page.getByText('There is no such page').waitFor();
    const busy = { type: 'about:blank', title: 'No', status: 429, detail: 'Too many streams.', code: 'limit_reached' };
    await page.route(/\/events\/stream/, (route) => route.fulfill({ status: 429, json: busy, headers: { 'Retry-After': '9' } }));
    await page.goto(`${scene.url}/#/sandboxes`);
    await page.reload();
    const notice = page.getByText('Not up to date: Too many streams.');
    await notice.waitFor();
    const sandbox = await scene.client.sandboxes.start({ spec: 'web' });
    await page.unroute(/\/events\/stream/);
    await page.getByRole('link', { name: sandbox.id }).waitFor();
    await notice.waitFor({ state: 'detached' });
    await sandbox.delete();
  });

  test('a form whose dialog was closed reports its failure, and leads nowhere', async () => {
    await using page = await opened().scene.page('sandboxes?new=yes');
    const failed = { type: 'about:blank', title: 'No', status: 500, detail: 'Not now.', code: 'internal_error' };
    for (const answer of [{ status: 500, json: failed }, null]) {
      const held = Promise.withResolvers<void>();
      await page.route(/\/sandboxes$/, async (route) => (await held.promise, answer === null ? await route.continue() : await route.fulfill(answer)), { times: 1 });
      // The client may cancel the request as soon as it has the whole response.
      const answered = Promise.race([page.waitForEvent('requestfinished', isStart), page.waitForEvent('requestfailed', isStart)]);
      await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.keyboard.press('s');
      await page.getByRole('dialog').waitFor();
      held.resolve();
      await answered;
      if (answer !== null) await page.locator('.toast.failed').getByText('Not now.').waitFor();
    }
    const { items: [sandbox] } = await opened().scene.client.request('GET /api/v1/sandboxes/search', { query: { limit: 1 } });
    await page.locator('tbody a', { hasText: sandbox?.id ?? '' }).waitFor();
    expect(page.url()).toMatch(/#\/sandboxes\?new=yes$/);
    expect(await page.getByRole('dialog').count()).toBe(1);
  });

  test('a log that is shown stays while it can’t be followed', async () => {
    const { scene, seeded: { sandbox } } = opened();
    await using page = await scene.page(`sandboxes/${sandbox.id}`);
    const logs = [{ body: 'the first line' }, page530];
    // The third request gets no answer.
    await page.route(/\/logs\?/, async (route) => {
      const answer = logs.shift();
      if (answer !== undefined) await route.fulfill(answer);
    });
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.getByText('Not up to date: The response with status 530').waitFor();
    expect(await page.locator('.screen').textContent()).toBe('the first line');
  });
}

import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';
import { acpScript } from '../doubles/acp-agent/steps.ts';

const problem = { status: 500, json: { type: 'about:blank', title: 'No', status: 500, detail: 'Not now.', code: 'internal_error' } };

/** Tests of what pages show while they load, and after a load has failed. */
export function dashboardLoads(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  test('shows a change although its loads take longer than the next change', async () => {
    const { scene } = opened();
    await using page = await scene.page('sandboxes');
    await page.locator('tbody tr').first().waitFor();
    await page.route(/sandboxes\/search/, async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await route.continue().catch(() => {});
    });
    const sandbox = await scene.client.sandboxes.start({ spec: 'web', waitUntil: 'running' });
    const shown = new AbortController();
    const changes = (async () => {
      // By time, because a fast machine makes many changes in one load.
      const end = performance.now() + 15_000;
      while (performance.now() < end && !shown.signal.aborted) {
        await sandbox.pause();
        await sandbox.resume();
      }
      return shown.signal.aborted;
    })();
    await page.getByRole('link', { name: sandbox.id }).waitFor();
    shown.abort();
    expect(await changes, 'it is shown while the changes go on').toBe(true);
    await sandbox.delete();
  });

  test('shows a change between the load of the page and the beginning of its events', async () => {
    const { scene } = opened();
    const sandbox = await scene.client.sandboxes.start({ spec: 'web', waitUntil: 'running' });
    await using page = await scene.page('nothing');
    await page.getByText('There is no such page').waitFor();
    const held = Promise.withResolvers<void>();
    await page.route(/\/events/, async (route) => (await held.promise, await route.continue()));
    await page.goto(`${scene.url}/#/sandboxes/${sandbox.id}`);
    await page.reload();
    const status = page.locator('.page-title .status');
    await status.getByText('Running').waitFor();
    await sandbox.pause();
    held.resolve();
    await status.getByText(/Frozen|Stopped/).waitFor();
    await sandbox.delete();
  });

  test('does not show the rows of earlier filters as those of filters whose load has failed', async () => {
    await using page = await opened().scene.page('sandboxes');
    await page.locator('tbody tr').first().waitFor();
    await page.route(/status__eq/, (route) => route.fulfill(problem));
    await page.getByLabel('Status').selectOption('Error');
    await page.getByText('Not now.').waitFor();
    expect(await page.locator('tbody tr').count()).toBe(0);
    await page.unroute(/status__eq/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('cell', { name: 'broken' }).waitFor();
  });

  test('does not show an earlier failure as that of filters that are being loaded', async () => {
    const { scene } = opened();
    await using page = await scene.page('sandboxes');
    await page.locator('tbody tr').first().waitFor();
    await page.route(/sandboxes\/search/, (route) => route.fulfill(problem));
    const failed = page.waitForResponse(/sandboxes\/search/);
    const sandbox = await scene.client.sandboxes.start({ spec: 'web', waitUntil: 'running' });
    await failed;
    // A load begins when the one before has ended, so the page has handled the failure then.
    const next = page.waitForRequest(/sandboxes\/search/);
    await sandbox.pause();
    await next;
    const held = Promise.withResolvers<void>();
    await page.route(/status__eq/, async (route) => (await held.promise, await route.continue()));
    await page.getByLabel('Status').selectOption('Error');
    await page.locator('table[aria-busy=true]').waitFor();
    expect(await page.getByText('Not now.').count()).toBe(0);
    held.resolve();
    await page.locator('table[aria-busy=false]').waitFor();
    await sandbox.delete();
  });

  test('keeps the rows if more of them can’t be loaded', async () => {
    await using page = await opened().scene.page('overview');
    await page.route(/sandboxes\/search/, async (route) => {
      if (route.request().url().includes('page_id')) return await route.fulfill(problem);
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), next_page_id: 'more' } });
    });
    await page.getByRole('link', { name: 'Sandboxes' }).first().click();
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByText('Not now.').waitFor();
    expect(await page.locator('tbody tr').count()).toBeGreaterThan(0);
    await page.unroute(/sandboxes\/search/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Not now.').waitFor({ state: 'detached' });
    await page.locator('table[aria-busy=false]').waitFor();
  });

  test('shows why a sandbox can’t be started, and its files and ports not be shown, while the specs can’t be read', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('overview');
    await page.getByRole('navigation').first().waitFor();
    await page.route(/sandbox-specs/, (route) => route.fulfill(problem));
    for (const tab of ['files', 'ports']) {
      await page.goto(`${scene.url}/#/sandboxes/${seeded.sandbox.id}?tab=${tab}`);
      await page.getByText('Not now.').waitFor();
    }
    await page.keyboard.press('s');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Not now.').waitFor();
    await page.unroute(/sandbox-specs/);
    await dialog.getByRole('button', { name: 'Try again' }).click();
    await dialog.getByLabel('Metadata').waitFor();
  });

  test('shows the log after its failure is over', async () => {
    const { scene } = opened();
    const sandbox = await scene.client.sandboxes.start({ spec: 'web', waitUntil: 'running' });
    await using page = await scene.page(`sandboxes/${sandbox.id}`);
    await page.route(/\/logs\?/, (route) => route.fulfill(problem), { times: 1 });
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.getByText('Not now.').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.locator('.screen').getByText('listening on port 8000').waitFor();
    await sandbox.delete();
  });

  test('the palette opens nothing that was found for an earlier text', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('overview');
    await page.getByRole('navigation').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('option').getByText('Conversation', { exact: true }).first().waitFor();
    const held = Promise.withResolvers<void>();
    await page.route(/title__contains/, async (route) => (await held.promise, await route.continue()));
    await page.keyboard.type(seeded.sandbox.id);
    await page.keyboard.press('Enter');
    await page.getByText('Searching …').waitFor();
    held.resolve();
    await page.getByRole('option', { name: seeded.sandbox.id }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`${seeded.sandbox.id}$`));
  });

  test('the palette says why it finds nothing', async () => {
    await using page = await opened().scene.page('overview');
    await page.getByRole('navigation').first().waitFor();
    await page.route(/title__contains/, (route) => route.fulfill(problem));
    await page.keyboard.press('Control+k');
    await page.keyboard.type('no such text');
    await page.getByText('Not now.').waitFor();
  });

  test('an action that fails after its page was left is reported', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('sandboxes');
    await page.getByRole('link', { name: seeded.sandbox.id }).click();
    const held = Promise.withResolvers<void>();
    await page.route(/sandboxes\/[^/]+$/, async (route) => {
      if (route.request().method() !== 'DELETE') return await route.continue();
      await held.promise;
      await route.fulfill(problem);
    });
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.goBack();
    await page.getByRole('heading', { name: 'Sandboxes' }).waitFor();
    held.resolve();
    await page.locator('.toast.failed').getByText('Not now.').waitFor();
  });

  test('a question about a sandbox is not asked on the page before it', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('sandboxes');
    await page.getByRole('link', { name: seeded.sandbox.id }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('its files are lost').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Sandboxes' }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('a conversation that was deleted elsewhere keeps no buttons, also if its last event is not seen', async () => {
    const { scene } = opened();
    const conversation = await scene.client.conversations.start({ title: 'Deleted elsewhere' });
    await using page = await scene.page('conversations');
    const held = Promise.withResolvers<void>();
    await page.route(/app-conversations\/[^/]+\/events/, async (route) => (await held.promise, await route.continue()));
    await page.getByRole('link', { name: 'Deleted elsewhere' }).click();
    await page.getByRole('button', { name: 'Rename' }).waitFor();
    await conversation.delete();
    held.resolve();
    await page.getByRole('heading', { name: 'Not found' }).waitFor();
    await page.getByRole('button', { name: 'Rename' }).waitFor({ state: 'detached' });
  });

  test('a conversation whose title is empty has a link', async () => {
    const { scene } = opened();
    const { id } = await scene.client.conversations.start({ title: ' ' });
    await using page = await scene.page('conversations');
    await page.locator(`a[href$="${id}"]`, { hasText: 'Untitled' }).click();
    await page.getByRole('button', { name: 'Rename' }).click();
    const dialog = page.getByRole('dialog');
    const rename = async (title: string) => {
      await page.getByRole('dialog').getByLabel('Title').fill(title);
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await rename('Once');
    await page.getByRole('heading', { name: 'Once' }).waitFor();
    await page.getByRole('button', { name: 'Rename' }).click();
    await rename('');
    await page.getByRole('heading', { name: 'Untitled' }).waitFor();
    expect((await scene.client.conversations.get(id)).state.title).toBeNull();
  });

  test('compares the texts of a change once, not for each part of the answer', async () => {
    const { scene } = opened();
    const lines = Array.from({ length: 3000 }, (_, line) => `line ${line}`);
    const newText = lines.map((line, index) => (index % 4 === 0 ? `new ${line}` : line)).join('\n');
    const content = [{ type: 'diff' as const, path: 'long.txt', oldText: lines.join('\n'), newText }];
    const conversation = await scene.client.conversations.start({});
    for await (const event of conversation.turn(acpScript({ tool: { toolCallId: 'long', title: 'A long one', content } }))) void event;
    await using page = await scene.page(`conversations/${conversation.id}`);
    await page.locator('.tool .diff').waitFor({ state: 'attached' });
    const devTools = await page.context().newCDPSession(page);
    await devTools.send('Performance.enable', { timeDomain: 'threadTicks' });
    const scriptSeconds = async () => {
      const { metrics } = await devTools.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'ScriptDuration')?.value ?? 0;
    };
    const before = await scriptSeconds();
    const message = page.getByLabel('Message');
    for (let count = 0; count < 8; count += 1) {
      await message.fill(`message ${count}`);
      await message.press('Enter');
      await page.locator('.said.agent').getByText(`heard: message ${count}`).waitFor();
    }
    const seconds = await scriptSeconds() - before;
    expect(seconds, 'the time in scripts').toBeLessThan(1.5);
  });
}

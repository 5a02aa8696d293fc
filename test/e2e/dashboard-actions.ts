import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';
import { acpScript, type AcpStep } from '../doubles/acp-agent/steps.ts';
import { createClient } from '../../src/client/index.ts';

const options = [{ optionId: 'yes', name: 'Go on', kind: 'allow_once' as const }];
const askAs = (id: string): AcpStep => ({ ask: { toolCallId: id, title: id, options } });

/** Tests of actions in the dashboard with the mouse. */
export function dashboardActions(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  test('publishes changes, after an error because the host supports no pull requests', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`conversations/${seeded.conversation.id}?tab=changes`);
    const branch = 'fix/cart';
    await page.getByRole('button', { name: 'Publish' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Branch/).fill(branch);
    await dialog.getByRole('button', { name: 'Publish' }).click();
    await dialog.getByRole('alert').getByText(/pull request/).waitFor();
    await dialog.getByLabel('Description').fill('It counts');
    for (const isOn of [false, true]) await dialog.getByLabel('Open a pull request').setChecked(isOn);
    expect(await dialog.getByLabel('Description').inputValue()).toBe('It counts');
    await dialog.getByLabel('Open a pull request').uncheck();
    await dialog.getByRole('button', { name: 'Publish' }).click();
    await page.locator('.banner.good code', { hasText: branch }).waitFor();
    expect(scene.git('show', '--name-only', '--format=', branch)).toBe('src/cart.ts\ntest/cart.test.ts\n');
  });

  test('says that a publication is not the last commit only when this is known', async () => {
    const { scene } = opened();
    const conversation = await scene.client.conversations.start({ selected_repository: 'acme/shop' });
    const work = async (step: AcpStep) => {
      for await (const event of conversation.turn(acpScript(step))) void event;
    };
    await work({ write: { path: 'new.txt', text: 'tea' } });
    await scene.client.request('POST /api/v1/app-conversations/{id}/publish', { path: { id: conversation.id }, body: { branch: 'new' } });
    await using page = await scene.page(`conversations/${conversation.id}?tab=changes`);
    const published = page.locator('.banner.good');
    await published.waitFor();
    expect(await published.textContent()).toBe('Published to new');
    await work({ run: 'echo more >>new.txt && git add -A && git -c user.name=Agent -c user.email=agent@example.com commit --quiet --message "Add tea"' });
    await published.getByText('not the last commit').waitFor();
  });

  test('starts a conversation on a branch, queues a message, stops the turn, renames and archives it', async () => {
    const { scene } = opened();
    await using page = await scene.page('conversations?new=yes');
    const dialog = page.getByRole('dialog');
    const name = `Go on ${'and on '.repeat(30)}`;
    // One of the surrogate pairs lies across the 80th character.
    const title = `-${'🍵'.repeat(40)}${'/and/wait'.repeat(30)}`;
    const content = [{ type: 'diff' as const, path: 'cart.ts', oldText: 'one\n', newText: `${'two '.repeat(300)}\n` }];
    const ask = { toolCallId: 'wait', title, options: [{ optionId: 'yes', name, kind: 'allow_once' as const }] };
    await dialog.getByLabel('What should the agent do?').fill(acpScript({ tool: { toolCallId: 'wait', title, content } }, { ask }));
    const firstPage = { items: [{ name: 'a' }], next_page_id: 'second' };
    await page.route(/branches\?limit=100$/, (route) => route.fulfill({ json: firstPage }));
    await page.route(/page_id=second/, async (route) => route.fulfill({ response: await route.fetch({ url: route.request().url().replace('&page_id=second', '') }) }));
    await dialog.getByRole('combobox', { name: 'Repository' }).fill('acme/shop');
    await dialog.locator('option[value=develop]').waitFor({ state: 'attached' });
    await dialog.getByLabel('Branch').fill('develop');
    await dialog.getByRole('button', { name: 'Start' }).click();
    await page.getByRole('button', { name: 'Go on' }).waitFor();
    await page.locator('.permission .diff .removed', { hasText: 'one' }).waitFor();
    expect(await page.locator('.permission').evaluate((card) => card.scrollWidth - card.clientWidth), 'a long request fits').toBe(0);
    await page.getByLabel('Message').fill('after it');
    await page.getByRole('link', { name: 'Sandboxes' }).first().click();
    await page.goBack();
    expect(await page.getByLabel('Message').inputValue(), 'an unsent text stays').toBe('after it');
    await page.getByRole('button', { name: 'Queue' }).click();
    const queued = page.getByRole('list', { name: 'Queue' }).getByRole('listitem');
    await queued.filter({ hasText: 'after it' }).waitFor();
    await page.getByLabel('Message').fill('or not');
    await page.getByRole('button', { name: 'Queue' }).click();
    await queued.filter({ hasText: 'or not' }).getByRole('button', { name: 'Withdraw' }).click();
    await page.locator('.said.user', { hasText: 'or not' }).getByText('Withdrawn').waitFor();
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('or not');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.said.agent').getByText('heard: after it').waitFor();
    const rows = await page.locator('.log-row').allTextContents();
    const end = rows.findIndex((text) => text.includes('The turn ended: cancelled.'));
    expect(rows.findIndex((text) => /^You.*after it$/.test(text)), 'a message is shown where its turn began').toBeGreaterThan(end);
    expect(await queued.count()).toBe(0);
    await page.getByRole('button', { name: 'Rename' }).click();
    await dialog.getByLabel('Title').fill('The other one');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'The other one' }).waitFor();
    await page.getByRole('button', { name: 'Archive' }).click();
    await dialog.getByRole('button', { name: 'Archive' }).click();
    await page.locator('.composer-off').waitFor();
    await page.getByRole('link', { name: 'Conversations' }).first().click();
    await page.getByRole('link', { name: 'Write the release notes' }).waitFor();
    await page.getByRole('searchbox').fill('The other');
    await page.getByRole('link', { name: 'The other one' }).waitFor();
    await page.getByRole('link', { name: 'Write the release notes' }).waitFor({ state: 'detached' });
  });

  test('stops a turn whose start is older than the events that are read first, and shows a conversation with only older events', async () => {
    const { scene, seeded } = opened();
    const conversation = await scene.client.conversations.start({});
    const plans = Array.from({ length: 1600 }, () => ({ plan: [] }));
    for await (const event of conversation.turn(acpScript(...plans, askAs('wait')))) if (event.kind === 'permission_requested') break;
    await using page = await scene.page(`conversations/${conversation.id}`);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The turn ended: cancelled.').waitFor();
    await page.goto(`${scene.url}/#/conversations/${seeded.conversation.id}`);
    await page.getByText('The total ignores how many').waitFor();
  });

  test('shows a message that waits for the end of a long turn', async () => {
    const { scene } = opened();
    const conversation = await scene.client.conversations.start({});
    const plans = Array.from({ length: 3200 }, () => ({ plan: [] }));
    // So many rows that the oldest ones are not drawn.
    const calls = Array.from({ length: 60 }, (_, call) => ({ tool: { toolCallId: `call ${call}`, title: `call ${call}` } }));
    let requests = 0;
    for await (const event of conversation.turn(acpScript(askAs('first'), ...plans, ...calls, askAs('second')))) {
      if (event.kind !== 'permission_requested') continue;
      if (++requests === 2) break;
      await conversation.send('and then');
      await conversation.answer(event.data.permission_id, 'yes');
    }
    await using page = await scene.page(`conversations/${conversation.id}`);
    await page.getByRole('list', { name: 'Queue' }).getByText('and then').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.locator('.said.agent').getByText('heard: and then').waitFor();
  });

  test('a press outside closes a dialog in which nothing can be lost', async () => {
    await using page = await opened().scene.page('overview');
    await page.getByRole('navigation').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').waitFor();
    await page.mouse.click(2, 2);
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test('creates and revokes a key that is limited to some repositories', async () => {
    const { scene } = opened();
    await using page = await scene.page('keys');
    await page.getByRole('button', { name: 'New key' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Name/).fill('ci');
    // A press outside loses nothing: neither what is typed, nor the key that is shown only once.
    await page.mouse.click(2, 2);
    await dialog.getByLabel('Access').last().selectOption('Read only');
    await dialog.getByLabel(/^Repositories/).fill('acme/*');
    await dialog.getByLabel(/^Owner/).fill('ci-bot');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.locator('.secret').waitFor();
    await page.mouse.click(2, 2);
    const key = await dialog.locator('.secret code').textContent();
    const { user_id: owner, access, repositories } = await createClient({ url: scene.url, key: key ?? '' }).request('GET /api/v1/me');
    expect([owner, access, repositories]).toEqual(['ci-bot', 'read', ['acme/*']]);
    await dialog.getByRole('button', { name: 'Done' }).click();
    const row = page.getByRole('row', { name: 'ci-bot' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await row.getByText('Revoked').waitFor();
    await page.getByRole('button', { name: 'New key' }).click();
    await dialog.getByLabel(/^Name/).fill('without patterns');
    await dialog.getByLabel(/^Repositories/).fill(' , ');
    await dialog.getByLabel(/^Owner/).fill('somebody');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: 'without patterns' }).getByText('All', { exact: true }).waitFor();
  });

  test("shows a repository's microagents", async () => {
    const { scene } = opened();
    await using page = await scene.page('microagents');
    await page.getByRole('combobox', { name: 'Repository' }).fill('acme/shop');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('link', { name: 'deploy' }).click();
    await page.getByText('How to deploy').waitFor();
    await page.getByText('release', { exact: true }).waitFor();
  });

  test('starts a sandbox of the spec whose button is pressed, and refuses a variable without a value', async () => {
    const { scene } = opened();
    await using page = await scene.page('specs');
    await page.locator('.card', { hasText: 'A web server' }).getByRole('link', { name: 'Start' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/^Variables/).fill('A=1\nB');
    await dialog.getByRole('button', { name: 'Start' }).click();
    await dialog.getByRole('alert').getByText('NAME=value, but one is: B').waitFor();
    await dialog.getByLabel(/^Variables/).fill('A=1');
    await dialog.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL(/#\/sandboxes\/sb-/);
    const sandbox = await scene.client.sandboxes.get(/sb-\w+/.exec(page.url())?.[0] ?? '');
    expect(sandbox.state.sandbox_spec_id).toBe('web');
    await sandbox.delete();
  });

  test('finds a sandbox that is not among the newest', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('overview');
    const newest = { items: [], next_page_id: 'older' };
    await page.route(/sandboxes\/search\?limit=100$/, (route) => route.fulfill({ json: newest }));
    await page.route(/page_id=older/, async (route) => route.fulfill({ response: await route.fetch({ url: route.request().url().replace('&page_id=older', '') }) }));
    await page.getByRole('navigation').first().waitFor();
    await page.keyboard.press('Control+k');
    const search = page.getByRole('combobox', { name: /^Go to a page/ });
    await search.fill(seeded.sandbox.id);
    await page.getByRole('option', { name: seeded.sandbox.id }).waitFor();
    await search.dispatchEvent('keydown', { key: 'Enter', isComposing: true });
    await page.getByRole('option', { name: seeded.sandbox.id }).click();
    await page.waitForURL(new RegExp(`${seeded.sandbox.id}$`));
  });

  test('creates a link to a port that expires after a day', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=ports`);
    await page.getByLabel('Links end after').selectOption('A day');
    await page.getByRole('button', { name: 'Make a link' }).first().click();
    await page.getByText('in 23h').waitFor();
  });

  test('the palette shows the entry that the arrow keys choose', async () => {
    await using page = await opened().scene.page('overview');
    await page.getByRole('navigation').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('option').getByText('Conversation', { exact: true }).first().waitFor();
    await page.setViewportSize({ width: 640, height: 300 });
    await page.keyboard.press('ArrowUp');
    const hidden = await page.getByRole('option', { selected: true }).evaluate((option) => {
      const [list, shown] = [option.parentElement?.getBoundingClientRect(), option.getBoundingClientRect()];
      return [shown.bottom - (list?.bottom ?? 0), (list?.top ?? 0) - shown.top];
    });
    expect(Math.max(...hidden)).toBeLessThanOrEqual(1);
  });

  test('a long draft can be sent at a zoom of 400 %', async () => {
    const { scene } = opened();
    const { id } = await scene.client.conversations.start({});
    const { page, context } = await scene.open(`conversations/${id}`, { viewport: { width: 320, height: 256 } });
    await page.getByLabel('Message').fill('one line\n'.repeat(9));
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    const box = await page.getByRole('button', { name: 'Send' }).boundingBox();
    expect((box?.y ?? Infinity) + (box?.height ?? 0)).toBeLessThanOrEqual(256);
    await context.close();
  });

  test('shows the ports of a running sandbox whose spec is no longer configured', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('nothing');
    await page.getByText('There is no such page').waitFor();
    await page.route(/sandbox-specs/, (route) => route.fulfill({ json: { items: [], next_page_id: null } }));
    await page.goto(`${scene.url}/#/sandboxes/${seeded.sandbox.id}`);
    await page.getByText('web (no longer configured)').waitFor();
    await page.getByRole('link', { name: 'Ports' }).click();
    await page.getByRole('cell', { name: '8000' }).waitFor();
  });

  test('a number of the overview leads to sandboxes that it counts', async () => {
    const { scene } = opened();
    const overview = await scene.client.request('GET /api/v1/overview');
    const sandboxes = { ...overview.sandboxes, by_status: { ...overview.sandboxes.by_status, STARTING: 0, RESUMING: 2 } };
    await using page = await scene.page('nothing');
    await page.getByText('There is no such page').waitFor();
    await page.route(/\/overview$/, (route) => route.fulfill({ json: { ...overview, sandboxes } }));
    await page.keyboard.press('1');
    expect(await page.getByRole('link', { name: '2 Starting' }).getAttribute('href')).toBe('#/sandboxes?status=RESUMING');
  });

  test('keeps the focus at a button after its dialog, and after its work', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=ports`);
    const focused = (name: string) => page.getByRole('button', { name }).and(page.locator(':focus'));
    await page.getByRole('button', { name: 'Delete' }).press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).press('Enter');
    await focused('Delete').waitFor();
    await page.getByRole('button', { name: 'Make a link' }).first().press('Enter');
    await page.getByText('Ends in').waitFor();
    await focused('Make a link').waitFor();
  });

  test('says how long a refused message is, and a failure covers no button of the composer', async () => {
    const { scene } = opened();
    const { id } = await scene.client.conversations.start({});
    await using page = await scene.page(`conversations/${id}`);
    const failure = page.getByText('must have at most 100000 characters, but has 100001');
    await page.getByLabel('Message').fill('x'.repeat(100_001));
    await page.keyboard.press('Enter');
    await failure.waitFor();
    await page.getByLabel('Message').fill('short');
    await page.getByLabel('Message').dispatchEvent('keydown', { key: 'Enter', keyCode: 229 });
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.said.agent').getByText('heard: short').waitFor();
    expect(await page.locator('.said.user').count(), 'the end of a composition in Safari sends nothing').toBe(1);
    await page.getByRole('button', { name: 'Close' }).click();
    await failure.waitFor({ state: 'detached' });
  });
}

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import axe from 'axe-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createScene, type Scene } from '../dashboard/scene.ts';
import { seed, type Seeded } from '../dashboard/seed.ts';
import { acpScript } from '../doubles/acp-agent/steps.ts';
import { describeWithChromium } from '../support/chromium.ts';
import { dashboardActions } from './dashboard-actions.ts';
import { dashboardDrafts } from './dashboard-drafts.ts';
import { dashboardFailures } from './dashboard-failures.ts';
import { dashboardFiles } from './dashboard-files.ts';
import { dashboardLoads } from './dashboard-loads.ts';
import { dashboardLogins } from './dashboard-logins.ts';
import { dashboardLogs } from './dashboard-logs.ts';
import { dashboardTerminals } from './dashboard-terminals.ts';
import { createClient } from '../../src/client/index.ts';

const project = join(import.meta.dirname, '../..');

/** Returns a shell command that prints the text many times in one line, and an empty line. */
const long = (text: string) => `yes '${text}' | head -n 30000 | tr -d '\\n'; echo; echo`;

beforeAll(() => void execFileSync(process.execPath, ['build.ts', 'dashboard'], { cwd: project }));

test('the dashboard without the terminal is smaller than 120 KiB', () => {
  const assets = join(project, 'dist/dashboard/assets');
  const loaded = readdirSync(assets).filter((name) => !name.startsWith('terminal'));
  expect(loaded.length).toBeGreaterThan(2);
  const sizes = loaded.map((name) => gzipSync(readFileSync(join(assets, name))).length);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(120 * 1024);
});

describeWithChromium('The dashboard in a browser', () => {
  let scene: Scene;
  let seeded: Seeded;
  beforeAll(async () => {
    scene = await createScene();
    seeded = await seed(scene.client);
  });
  afterAll(async () => await scene[Symbol.asyncDispose]());

  test('logs in with a key, and stays on the requested page', async () => {
    await using page = await scene.page('specs', null);
    await page.getByLabel('API key').fill('skep_wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText(/key/).waitFor();
    await page.getByLabel('API key').fill(scene.key);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'coder' }).waitFor();
    expect(page.url()).toMatch(/#\/specs$/);
  });

  test('logs in with a link that works only once', async () => {
    await using page = await scene.page('specs', null);
    await page.getByLabel('API key').waitFor();
    const link = await scene.link();
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expect(page.url()).not.toContain(link.split('/').at(-1));
    await page.goto('about:blank');
    await page.goto(link);
    await page.locator('.toast.failed').waitFor();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.evaluate('localStorage.clear()');
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByRole('alert').waitFor();
    expect(await page.evaluate('localStorage.getItem("skep.key")')).toBeNull();
  });

  test('answers a permission request, sends a message, and shows HTML in messages as text', async () => {
    await using page = await scene.page(`conversations/${seeded.conversation.id}`);
    await page.getByRole('button', { name: 'Allow once' }).click();
    await page.getByText('Answered: Allow once').waitFor();
    await page.getByText('It is pushed.').waitFor();
    await page.getByRole('status').getByText('The agent has finished.').waitFor();
    const hostile = '<img src=x onerror="document.title=1"><script>document.title = 1</script> [click](javascript:document.title=1)';
    await page.getByLabel('Message').fill(acpScript({ say: hostile }));
    await page.keyboard.press('Enter');
    await page.locator('.said.agent').last().getByText('<script>').waitFor();
    expect(await page.locator('.log img, .log script, .log a').count()).toBe(0);
    expect(await page.title()).toMatch(/^The total of the cart/);
    await page.getByRole('link', { name: /^Changes/ }).click();
    await page.locator('summary', { hasText: 'src/cart.ts' }).click();
    await page.locator('.diff .added', { hasText: 'price * count' }).waitFor();
  });

  test('renders Markdown as elements, and images as links', async () => {
    const conversation = await scene.client.conversations.start({});
    const command = 'npm test '.repeat(40).trim();
    const texts = [
      `Two steps:\n1. Read\n   - the \`cart\`\n\n   \`\`\`sh\n   ${command}\n   \`\`\`\n\n2. Mend\n`, '| a | b |\n|---|--:|\n| 1 | *2* |\n', '> said\n\n---\n',
      '~~~\nx\n~~~\n\n    y\n', '**bold `c`**, ~~old~~, README.md, ![a cart](https://example.com/cart.png), https://example.com/a_b.\n', 'Done.',
    ];
    for await (const event of conversation.turn(acpScript({ say: texts.join('\n') }))) void event;
    await using page = await scene.page(`conversations/${conversation.id}`);
    await page.getByText('Done.', { exact: true }).waitFor();
    const html = await page.locator('.said.agent .markdown').evaluate((element) => element.innerHTML);
    expect(html.replaceAll(' target="_blank" rel="noopener noreferrer"', '').replaceAll(' tabindex="0"', '')).toBe([
      `<p>Two steps:</p><ol><li><p>Read</p><ul><li>the <code>cart</code></li></ul><pre>${command}</pre></li><li><p>Mend</p></li></ol>`,
      '<table><thead><tr><th>a</th><th style="text-align: right;">b</th></tr></thead>',
      '<tbody><tr><td>1</td><td style="text-align: right;"><em>2</em></td></tr></tbody></table>',
      '<blockquote><p>said</p></blockquote><hr><pre>x</pre><pre>y</pre><p><strong>bold <code>c</code></strong>, <s>old</s>, README.md, ',
      '<a href="https://example.com/cart.png">a cart</a>, <a href="https://example.com/a_b">https://example.com/a_b</a>.</p><p>Done.</p>',
    ].join(''));
    expect(await page.locator('.log').evaluate((log) => log.scrollWidth - log.clientWidth), 'a long line fits').toBe(0);
  });

  test('renders a long text without delay if nothing in it is closed', async () => {
    const conversation = await scene.client.conversations.start({});
    const parts = [long('['.repeat(4)), long('[a]('), long('**a'), "echo '```'", long(' '.repeat(4)), "echo 'x'", "echo '```'", 'echo The end.'];
    for await (const event of conversation.turn(acpScript({ run: `(${parts.join('; ')}) >long.md` }, { read: 'long.md' }))) void event;
    await using page = await scene.page(`conversations/${conversation.id}`);
    await page.locator('.said.agent').getByText('The end.').waitFor();
  });

  const suites = [
    dashboardActions, dashboardDrafts, dashboardFailures, dashboardFiles, dashboardLoads, dashboardLogins, dashboardLogs, dashboardTerminals,
  ];
  for (const define of suites) define(() => ({ scene, seeded }));

  test('starts a sandbox at a zoom of 200 %', async () => {
    const { page, context } = await scene.open('sandboxes?new=yes', { viewport: { width: 640, height: 360 }, deviceScaleFactor: 2 });
    await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click();
    await page.waitForURL(/#\/sandboxes\/sb-/);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL(/#\/sandboxes$/);
    await context.close();
  });

  test('starts, pauses, resumes and deletes a sandbox with the keyboard only', async () => {
    await using page = await scene.page('overview');
    const press = (...keys: readonly string[]) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
    const tabTo = async (name: string) => {
      const button = page.getByRole('button', { name, exact: true });
      const isThere = () => button.and(page.locator(':focus')).count();
      await button.waitFor();
      for (let steps = 0; (await isThere()) === 0 && steps < 60; steps += 1) await press('Tab');
    };
    await page.getByRole('heading', { name: 'Starts' }).waitFor();
    await press('Control+k');
    await page.keyboard.type('start a sand');
    await press('Enter');
    await page.getByRole('dialog').getByText('Metadata', { exact: true }).waitFor();
    await tabTo('Start');
    await press('Enter');
    await page.waitForURL(/#\/sandboxes\/sb-/);
    const id = /sb-\w+/.exec(page.url())?.[0] ?? '';
    const status = page.locator('.page-title .status');
    await tabTo('Pause');
    await press('Enter');
    await status.getByText(/Frozen|Stopped/).waitFor();
    await tabTo('Resume');
    await press('Enter');
    await status.getByText('Running').waitFor();
    await tabTo('Delete');
    await press('Enter');
    await page.getByText('its files are lost').waitFor();
    await press('Tab', 'Enter');
    await page.getByText(`${id} is deleted.`).waitFor();
    await page.waitForURL(/#\/sandboxes$/);
  });

  test('filters sandboxes by a pair of metadata with any characters, and keeps the filter in the address', async () => {
    const sandbox = await scene.client.sandboxes.start({ spec: 'web', metadata: { user: 'ann@acme.org, x=1 + 50%' } });
    await using page = await scene.page('sandboxes');
    const links = page.locator('tbody a[href*="sb-"]');
    await page.getByLabel('Metadata: task=42').fill('user=ann@acme.org, x=1 + 50%');
    await expect.poll(() => links.allTextContents()).toEqual([sandbox.id]);
    await page.reload();
    await expect.poll(() => links.allTextContents()).toEqual([sandbox.id]);
    await sandbox.delete();
  });

  test('edits a file, and runs a command in a terminal under the strict content security policy', async () => {
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=files&file=%2Fworkspace%2Fserver.py`);
    await page.getByLabel('/workspace/server.py').fill('print(6 * 7)\n');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    await page.getByRole('link', { name: 'Terminal' }).click();
    await page.getByRole('button', { name: 'Open a terminal' }).click();
    await page.locator('.xterm-screen').waitFor();
    await page.keyboard.type('cat server.py; printf "\\033[38;2;90;200;120mgr%s\\n" een\n');
    await page.locator('.xterm-rows').getByText('print(6 * 7)').waitFor();
    expect(await page.locator('.xterm-rows').getByText('green', { exact: true }).getAttribute('style')).toContain('rgb(90, 200, 120)');
  });

  test('keeps the line ends and the byte order mark of an edited file, and edits no file with mixed line ends', async () => {
    const { id, files } = seeded.sandbox;
    await files.write('/workspace/dos.txt', '\uFEFFone\r\ntwo\r\n');
    await files.write('/workspace/mixed.txt', 'one\r\ntwo\n');
    await using page = await scene.page(`sandboxes/${id}?tab=files&file=%2Fworkspace%2Fdos.txt`);
    await page.getByLabel('/workspace/dos.txt').press('Control+End');
    await page.keyboard.type('three\n');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    expect(Buffer.from(await (await files.read('/workspace/dos.txt')).arrayBuffer()).toString()).toBe('\uFEFFone\r\ntwo\r\nthree\r\n');
    await page.goto(`${scene.url}/#/sandboxes/${id}?tab=files&file=%2Fworkspace%2Fmixed.txt`);
    expect(await page.getByLabel('/workspace/mixed.txt').getAttribute('readonly')).not.toBeNull();
    await page.getByText('mixes kinds of line ends').waitFor();
  });

  test('reads the log and the usage of a sandbox again after a failure', async () => {
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}`);
    await page.waitForResponse(/\/usage$/);
    const problem = { type: 'about:blank', title: 'No', status: 409, detail: 'Not now.', code: 'sandbox_not_running' };
    await page.route(/\/usage$/, (route) => route.fulfill({ status: 409, json: problem }), { times: 1 });
    await page.waitForResponse((response) => response.url().endsWith('/usage') && response.status() === 409);
    await page.waitForResponse((response) => response.url().endsWith('/usage') && response.ok());
    await page.route(/\/logs\?/, (route) => route.fulfill({ body: 'It broke off' }), { times: 1 });
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.locator('.screen').getByText('listening on port 8000').waitFor();
  });

  test.each([
    // The styles change at 800 and 1120 pixels, so axe checks one of the two narrow widths.
    { colorScheme: 'light', widths: [640, 1280] }, { colorScheme: 'dark', widths: [320] },
  ] as const)('has no serious axe violation and no overflow on any page: $colorScheme, $widths px', async ({ colorScheme, widths }) => {
    const { id } = seeded.sandbox;
    const talk = `conversations/${seeded.conversation.id}`;
    const places = [
      'overview', 'conversations', 'conversations?new=yes', talk, `${talk}?tab=changes`, `${talk}?tab=details`, 'sandboxes', 'sandboxes?new=yes',
      `sandboxes/${id}`, `sandboxes/${id}?tab=logs`, `sandboxes/${id}?tab=files`, `sandboxes/${id}?tab=ports`, `sandboxes/${id}?tab=terminal`,
      'microagents', 'microagents/acme%2Fshop?file=.skep%2Fmicroagents%2Fdeploy.md', 'specs', 'keys', 'settings', 'nothing',
    ];
    const { page, context } = await scene.open('overview', { colorScheme, reducedMotion: 'reduce' });
    await page.evaluate(axe.source);
    for (const place of places) {
      await page.goto(`${scene.url}/#/${place}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('.loading').first().waitFor({ state: 'detached' });
      for (const width of widths) {
        await page.setViewportSize({ width, height: 720 });
        expect(await page.evaluate('document.documentElement.scrollWidth'), place).toBeLessThanOrEqual(width);
      }
      const found = await page.evaluate('axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes.map(({ html }) => html) })))');
      const serious = (found as readonly { readonly impact: string }[]).filter(({ impact }) => impact === 'serious' || impact === 'critical');
      expect(serious, place).toEqual([]);
    }
    await context.close();
  });

  test('reports a lost server, and shows new messages after its return', async () => {
    const { page, context } = await scene.open(`conversations/${seeded.conversation.id}`);
    await page.getByText('It is pushed.').waitFor();
    await scene.kill();
    await page.getByText('The server does not answer').waitFor();
    await scene.restart();
    await page.getByText('The server does not answer').waitFor({ state: 'detached' });
    await createClient(scene).conversations.get(seeded.conversation.id).then((conversation) => conversation.send('Are you back?'));
    await page.locator('.said.agent').getByText('heard: Are you back?').waitFor();
    await context.close();
  });
});

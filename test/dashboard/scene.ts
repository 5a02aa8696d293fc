import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { onTestFailed } from 'vitest';
import { createClient, type SkepClient } from '../../src/client/index.ts';
import { createRepository, type RepositoryDescription } from '../contracts/git-repository.ts';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { scripts } from './seed.ts';
import { openBrowser, openContext } from '../support/chromium.ts';
import { removeFolder, runSkep, type Server, startServer, temporaryFolder } from '../support/server.ts';

const at = 1_700_000_000;

const deploy = `---
triggers: [deploy, release]
type: knowledge
---
# How to deploy

1. Run \`npm test\`.
2. Tag the commit, and push the tag.

**Never** on a Friday. See [the handbook](https://example.com/handbook).
`;

const cart = `export interface Item { price: number; count: number }

export function total(items: Item[]): number {
  let sum = 0;
  for (const item of items) sum += item.price;
  return sum;
}
`;

const shop: RepositoryDescription = {
  commits: [{
    id: 'first', at,
    files: [
      ['README.md', '# The shop\n\nIt sells tea.\n'], ['src/cart.ts', cart],
      ['.skep/microagents/deploy.md', deploy], ['.skep/microagents/testing/unit.md', '---\ntriggers: [unit test]\n---\nRun `npm test`.\n'],
    ],
  }],
  branches: { main: 'first', develop: 'first' },
};

const agent = { protocol: 'acp', command: acpAgentCommand({ scripts }), permissions: 'ask' };
const resting = ['sh', '-c', 'echo "listening on port 8000"; exec sleep infinity'];

const config = {
  specs: [
    { id: 'coder', description: 'A coding agent with the tools of the shop', command: resting, agent },
    { id: 'web', description: 'A web server', command: resting, ports: [{ name: 'WEB', port: 8000 }, { name: 'DOCS', port: 8001, public: true }] },
    { id: 'broken', description: 'Its command ends at once', command: ['sh', '-c', 'echo "cannot find module \'express\'" >&2; exit 3'] },
  ],
};

/** A server in its own process, with a repository and a scripted agent, and a browser. */
export interface Scene extends AsyncDisposable {
  readonly client: SkepClient;
  readonly key: string;
  readonly url: string;
  readonly browser: Browser;
  /** Returns a link that logs in once. */
  link(): Promise<string>;
  /** Runs git on the repository of the conversations, and returns its output. */
  git(...args: readonly string[]): string;
  /** Kills the server. */
  kill(): Promise<void>;
  /** Starts the server again, with the same address and data. */
  restart(): Promise<void>;
  /** Opens a page of the dashboard, logged in as an administrator, with another key, or not logged in. */
  open(place: string, options?: OpenOptions): Promise<OpenPage>;
  /** Opens a page that is closed when it is disposed of, which throws if the page has had errors. Its text is printed if the test fails. */
  page(place: string, key?: string | null): Promise<Page & AsyncDisposable>;
}

interface OpenOptions extends BrowserContextOptions {
  readonly key?: string | null;
}

interface OpenPage {
  readonly context: BrowserContext;
  readonly page: Page;
  /** The errors of the page, and what its content security policy has blocked. */
  readonly errors: readonly string[];
}

export async function createScene(): Promise<Scene> {
  const folder = await temporaryFolder();
  const shopFolder = join(folder, 'git/acme/shop.git');
  await createRepository(shopFolder, shop);
  const start = (port = '0'): Promise<Server> => startServer({
    dataDir: join(folder, 'data'), config, env: { SKEP_PORT: port, SKEP_LOCAL_GIT_ROOT: join(folder, 'git'), SKEP_PROXY_PORT: '0' },
  });
  let server = await start();
  const { url } = server;
  const link = async (): Promise<string> =>
    (await runSkep(['dashboard'], { SKEP_DATA_DIR: join(folder, 'data'), SKEP_PUBLIC_URL: url })).stdout.trim();
  const code = (await link()).split('#/login/')[1] ?? '';
  const { key } = await createClient({ url }).request('POST /api/v1/login', { body: { code } });
  const browser = await openBrowser();
  const scene: Scene = {
    client: createClient({ url, key }), key, url, browser, link,
    git: (...args) => execFileSync('git', ['--git-dir', shopFolder, ...args], { encoding: 'utf8' }),
    kill: () => server.kill(),
    async restart() {
      server = await start(new URL(url).port);
    },
    async page(place, key) {
      const { page, context, errors } = await scene.open(place, key === undefined ? {} : { key });
      let text = '';
      onTestFailed(() => console.error(`${place} showed at the end:\n${text}`));
      return Object.assign(page, {
        async [Symbol.asyncDispose]() {
          text = await page.locator('body').innerText({ timeout: 5000 }).catch(String);
          await context.close();
          if (errors.length > 0) throw new Error(errors.join('\n'));
        },
      });
    },
    async open(place, { key: given = key, ...options } = {}) {
      const context = await openContext(browser, options);
      const page = await context.newPage();
      const errors: string[] = [];
      page.on('pageerror', ({ message }) => errors.push(message));
      page.on('console', (message) => /Content Security Policy/.test(message.text()) && errors.push(message.text()));
      await page.goto(`${url}/#/${place}`);
      if (given !== null) {
        await page.evaluate(`localStorage.setItem('skep.key', ${JSON.stringify(given)})`);
        await page.reload();
      }
      return { context, page, errors };
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await server.close();
      await removeFolder(folder);
    },
  };
  return scene;
}

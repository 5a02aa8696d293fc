import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely } from 'kysely';
import { createConversationStore } from '../src/adapters/store/conversation-store.ts';
import type { Database } from '../src/adapters/store/database.ts';
import { createEventLog } from '../src/adapters/store/event-store.ts';
import { createSqliteDialect } from '../src/adapters/store/sqlite/dialect.ts';
import { createSqliteStore } from '../src/adapters/store/sqlite/index.ts';
import { type Conversation, conversationSortOrders } from '../src/domain/conversation.ts';
import type { PageKey } from '../src/domain/page.ts';
import type { ConversationFilter } from '../src/ports/conversation-store.ts';
import type { Store } from '../src/ports/store.ts';
import { boundedFigure, type Figure, inMs, median, timed } from './figure.ts';

const few = 1_000;
const many = 100_000;
const rounds = 60;
const owner = 'ann';
const start = Date.UTC(2026, 0, 1);

type Page = (store: Store, rows: number) => Promise<unknown>;

/** Measures a page of 100 from many conversations against the same page from few. */
export async function* benchPaging(): AsyncGenerator<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const [small, large] = [await filled(join(folder, 'few'), few), await filled(join(folder, 'many'), many)];
  try {
    for (const [name, page] of Object.entries(pages)) {
      const { smallMs, largeMs } = await compare(page, small, large);
      const texts = { name: `page of 100, ${name}`, measured: inMs(largeMs), reference: inMs(smallMs), note: `out of ${many}, and of ${few}` };
      yield boundedFigure(texts, largeMs / smallMs, { atMost: 2 });
    }
    yield await rareTitle(large);
  } finally {
    await Promise.all([small.close(), large.close()]);
    await rm(folder, { recursive: true, force: true });
  }
}

const pages: Readonly<Record<string, Page>> = {
  ...Object.fromEntries(
    conversationSortOrders.flatMap((order): [string, Page][] => [
      [`first, ${order}`, (store) => fetch(store, {}, order, null, 100)],
      [`deep, ${order}`, (store, rows) => fetch(store, {}, order, middleOf(rows), 100)],
    ]),
  ),
  'with a common title': (store) => fetch(store, { titleContains: 'DEPLOY' }, 'CREATED_AT_DESC', null, 100),
  'between two times': (store, rows) =>
    fetch(store, { createdFrom: timeOf(rows / 4), createdBefore: timeOf((rows * 3) / 4) }, 'CREATED_AT_DESC', null, 100),
  'of one sandbox': (store) => fetch(store, { sandboxId: 'shared' }, 'UPDATED_AT_DESC', null, 100),
  'of given ids': (store) =>
    fetch(store, { ids: Array.from({ length: 100 }, (_, n) => idOf(n * 3)) }, 'CREATED_AT_DESC', null, 100),
};

async function compare(page: Page, small: Store, large: Store): Promise<{ smallMs: number; largeMs: number }> {
  const times = { small: [] as number[], large: [] as number[] };
  for (let round = 0; round < rounds; round += 1) {
    times.small.push(await timed(() => page(small, few)));
    times.large.push(await timed(() => page(large, many)));
  }
  return { smallMs: median(times.small), largeMs: median(times.large) };
}

/** Measures the search for a rare word. No sort order helps here: the store searches the index of the owner's titles. */
async function rareTitle(store: Store): Promise<Figure> {
  const times: number[] = [];
  for (let round = 0; round < 9; round += 1) {
    times.push(await timed(() => fetch(store, { titleContains: 'needle' }, 'CREATED_AT_DESC', null, 1)));
  }
  const note = `every title of an owner with ${many} is read`;
  return { name: 'page with a rare title', measured: inMs(median(times)), reference: '', ratio: null, bound: null, ok: true, note };
}

async function fetch(
  store: Store,
  filter: ConversationFilter,
  order: (typeof conversationSortOrders)[number],
  after: PageKey | null,
  expected: number,
): Promise<void> {
  const { items } = await store.conversations.search(owner, filter, order, { after, limit: 100 });
  if (items.length !== expected) throw new Error(`the page has ${items.length} rows, not ${expected}`);
}

/** Creates a store with this many conversations, without waiting for the disk. */
async function filled(dataDir: string, rows: number): Promise<Store> {
  const store = await createSqliteStore({ dataDir });
  const sqlite = new DatabaseSync(join(dataDir, 'skep.db'));
  sqlite.exec('PRAGMA synchronous = OFF');
  const db = new Kysely<Database>({ dialect: createSqliteDialect(sqlite, 0) });
  const conversations = createConversationStore(db, createEventLog(db));
  for (let n = 0; n < rows; n += 1) await conversations.insert(conversationOf(n, rows));
  await db.destroy();
  return store;
}

/** The rows are updated in another order than they are created, and some have equal times. */
function conversationOf(n: number, rows: number): Conversation {
  return {
    id: idOf(n),
    ownerId: owner,
    title: n === Math.floor(rows / 2) ? 'a needle' : `${n % 3 === 0 ? 'Deploy the shop' : 'Mend the tests'}, attempt ${n}`,
    sandboxId: n < 100 ? 'shared' : `sandbox-${n}`,
    sandboxSpecId: 'node',
    startsSandbox: true,
    endsSandbox: true,
    sandboxParameters: {},
    selectedRepository: 'acme/shop',
    selectedBranch: 'main',
    gitProvider: 'local', repositoryPath: null, startPoint: null, possibleTips: {}, publications: {}, pullRequests: {},
    queue: [{ messageId: `message-${n}`, message: { content: [{ type: 'text', text: `Please look into number ${n}. ${'It fails. '.repeat(20)}` }] }, sandboxVersion: 0 }],
    turn: null,
    permission: null,
    permissionPolicy: 'ask',
    agentSessionId: null,
    microagents: null,
    startStatus: 'READY',
    executionStatus: null,
    statusReason: null,
    version: 3,
    createdAt: timeOf(n),
    updatedAt: timeOf((n * 7919) % rows),
    deletedAt: null,
    archivedAt: null,
    releasedAt: null,
    removedAt: null,
  };
}

function idOf(n: number): string {
  return `conversation-${String(n).padStart(20, '0')}`;
}

function timeOf(n: number): number {
  return start + Math.floor(n / 2) * 1000;
}

function middleOf(rows: number): PageKey {
  return { value: timeOf(rows / 2), id: '' };
}

import { equal, ok, rejects } from 'node:assert/strict';
import type { Event } from '../../src/domain/event.ts';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { Page, PageKey } from '../../src/domain/page.ts';
import type { Store } from '../../src/ports/store.ts';
import type { ContractCase } from './contract.ts';
import { someConversation } from './records.ts';

/** The permitted differences between the adapters of the store. */
export interface StoreTraits {
  /** Do the records outlive the store object? */
  readonly durable: boolean;
}

/** At least one connection. All see the same records. Concurrent calls use all connections in turn. */
export type Connections = readonly [Store, ...Store[]];

export interface OpenStore {
  readonly connections: Connections;
  /** Closes the connections and opens new ones to the same place. */
  reopen(): Promise<Connections>;
  /** Closes and removes everything. Called once, also if the store is already closed. */
  dispose(): Promise<void>;
}

export interface StoreHarness {
  readonly traits: StoreTraits;
  /** Opens a new, empty store. */
  open(): Promise<OpenStore>;
}

/** The contract of the store as a whole. Its parts have their own suites. */
export function storeContract(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'reports its health in one line', async ([store]) => {
      const { ok: answers, detail } = await store.check();
      equal(answers, true);
      ok(detail.length > 0 && !detail.includes('\n'), detail);
    }),
    storeCase(harness, 'can be closed twice, and then reports that it is closed', async ([store]) => {
      await store.close();
      await store.close();
      equal((await store.check()).ok, false);
    }),
    storeCase(
      harness,
      harness.traits.durable ? 'keeps its records when it is closed' : 'forgets its records when it is closed',
      async ([store], open) => {
        await store.conversations.insert(someConversation('kept'));
        const [reopened] = await open.reopen();
        equal((await reopened.conversations.find('kept')) !== null, harness.traits.durable);
      },
    ),
  ];
}

/** Purges until nothing is left. */
export async function purgeAll(records: { purge(before: number): Promise<boolean> }, before: number): Promise<void> {
  while (await records.purge(before));
}

export function storeCase(
  harness: StoreHarness,
  name: string,
  run: (connections: Connections, open: OpenStore) => Promise<void>,
): ContractCase {
  return {
    name,
    async run() {
      const open = await harness.open();
      try {
        await run(open.connections, open);
      } finally {
        await open.dispose();
      }
    },
  };
}

/** A case for each call: once the store is closed, it fails with `store_unavailable`. */
export function closedCases(harness: StoreHarness, calls: Readonly<Record<string, (store: Store) => Promise<unknown>>>): ContractCase[] {
  return Object.entries(calls).map(([name, call]) =>
    storeCase(harness, `${name} fails with store_unavailable after the store is closed`, async ([store]) => {
      await store.close();
      await rejects(call(store), (error) => isFailureOf(error, 'store_unavailable') && error.context.retryAfterSeconds >= 1);
    }),
  );
}

/** Makes `times` concurrent calls, through all connections in turn. */
export function race<T>(connections: Connections, times: number, call: (store: Store, turn: number) => Promise<T>): Promise<T[]> {
  return Promise.all(
    Array.from({ length: times }, (_, turn) => call(connections[turn % connections.length] ?? connections[0], turn)),
  );
}

/** Reads all pages, and calls `between` between two pages. */
export async function allPages<T>(
  fetch: (after: PageKey | null) => Promise<Page<T>>,
  between: () => Promise<void> = async () => {},
): Promise<T[]> {
  const seen: T[] = [];
  let after: PageKey | null = null;
  do {
    const page: Page<T> = await fetch(after);
    seen.push(...page.items);
    after = page.next;
    if (after !== null) await between();
  } while (after !== null);
  return seen;
}

/** Returns the texts of message events, and the kinds of the other events. */
export function textsOf(events: readonly Event[]): string[] {
  return events.map((event) => (event.kind === 'message' ? event.data.text : event.kind));
}

export function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

/** Returns a generator of integers from 0 to below the bound. The same seed gives the same numbers. */
export function numbers(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * bound);
  };
}

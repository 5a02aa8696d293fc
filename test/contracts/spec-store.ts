import { equal } from 'node:assert/strict';
import type { ContractCase } from './contract.ts';
import { hostileTexts } from './records.ts';
import { closedCases, race, storeCase, type StoreHarness } from './store.ts';

/** The contract of every `SpecStore`. */
export function specStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "returns when a spec's content was first seen", async ([{ specs }]) => {
      equal(await specs.firstSeen('node', 'v1', 100), 100);
      equal(await specs.firstSeen('node', 'v1', 200), 100);
      equal(await specs.firstSeen('node', 'v1', 50), 100);
      equal(await specs.firstSeen('python', 'v1', 300), 300);
    }),
    storeCase(harness, 'returns a new time if the content changes, even back to an earlier one', async ([{ specs }]) => {
      equal(await specs.firstSeen('node', 'v1', 100), 100);
      equal(await specs.firstSeen('node', 'v2', 200), 200);
      equal(await specs.firstSeen('node', 'v2', 300), 200);
      equal(await specs.firstSeen('node', 'v1', 400), 400);
    }),
    storeCase(harness, 'returns the same time to 20 concurrent callers', async (connections) => {
      const answers = await race(connections, 20, ({ specs }, turn) => specs.firstSeen('node', 'v1', 100 + turn));
      equal(new Set(answers).size, 1);
    }),
    storeCase(harness, 'stores special characters and SQL in texts unchanged', async ([{ specs }]) => {
      for (const [index, text] of hostileTexts.entries()) {
        equal(await specs.firstSeen(text, text, index), index);
        equal(await specs.firstSeen(text, text, 99), index);
      }
    }),
    ...closedCases(harness, { firstSeen: ({ specs }) => specs.firstSeen('node', 'v1', 100) }),
  ];
}

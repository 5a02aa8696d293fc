import assert from 'node:assert/strict';
import type { CheckoutCase } from './repository-checkouts-harness.ts';
import { isFailureOf } from '../../src/domain/failure.ts';

const start = 1_600_000_000;
const first = { id: 'first', at: start, files: [['a', '1'] as const] };
const second = { id: 'second', at: start + 10, files: [['b', '2'] as const] };
const rewritten = { id: 'rewritten', at: start + 20, files: [['c', '3'] as const] };

export const changeCases: readonly CheckoutCase[] = [
  [
    'checks out new commits, a rewritten history and another default branch at once',
    async ({ publish, open }) => {
      assert.deepEqual((await open(await publish({ commits: [first] }))).files, { a: '1' });
      assert.deepEqual((await open(await publish({ commits: [first, second] }))).files, { a: '1', b: '2' });
      const tree = await open(await publish({ commits: [rewritten] }));
      assert.deepEqual(tree.files, { c: '3' });
      const moved = await open(await publish({ commits: [first, second], defaultBranch: 'next' }));
      assert.deepEqual([moved.branch, moved.files], ['next', { a: '1', b: '2' }]);
      assert.equal((await open(await publish({ commits: [] }))).commit, null);
    },
  ],
  [
    'contains no commit or file that a rewritten history has dropped',
    async ({ publish, open, traits }) => {
      if (traits.workTree === 'files') return;
      const old = await open(await publish({ commits: [first, second] }));
      const secret = await old.git('rev-parse', 'HEAD:b');
      const tree = await open(await publish({ commits: [rewritten] }));
      await assert.rejects(tree.git('cat-file', '-e', secret));
      await assert.rejects(tree.git('cat-file', '-e', old.commit ?? ''));
    },
  ],
  [
    'checks out a branch whose name was a prefix of other branches before',
    async ({ publish, open }) => {
      const one = await publish({ commits: [first, second], branches: { topic: 'first' } });
      assert.deepEqual((await open(one, 'topic')).files, { a: '1' });
      const other = await publish({ commits: [first, second], branches: { 'topic/part': 'second' } });
      assert.deepEqual((await open(other, 'topic/part')).files, { a: '1', b: '2' });
      await assert.rejects(open(other, 'topic'), (error: unknown) => isFailureOf(error, 'branch_not_found'));
    },
  ],
  [
    'does not mix up repositories or branches',
    async ({ publish, open }) => {
      const shop = await publish({ commits: [first, second], branches: { old: 'first' } });
      const tool = await publish({ commits: [rewritten] }, 'acme/tool');
      const trees = await Promise.all([open(shop), open(tool), open(shop, 'old')]);
      assert.deepEqual(trees.map(({ files }) => files), [{ a: '1', b: '2' }, { c: '3' }, { a: '1' }]);
    },
  ],
  [
    'checks out one repository eight times at once',
    async ({ publish, open }) => {
      const source = await publish({ commits: [first, second] });
      const trees = await Promise.all(Array.from({ length: 8 }, () => open(source)));
      for (const { files, branch } of trees) assert.deepEqual([branch, files], ['main', { a: '1', b: '2' }]);
    },
  ],
];

import assert from 'node:assert/strict';
import { isFailureOf } from '../../src/domain/failure.ts';
import { agents, type StageCase } from './git-provider-harness.ts';
import { oneCommit } from './git-repository.ts';
import { assertFails, decidedBy } from './contract.ts';

const start = 1_600_000_000;
const file = `${agents}/a.md`;
const everything = { directory: () => agents, accepts: () => true };

export const repositoryCases: readonly StageCase[] = [
  [
    "passes the repository's actual name to the caller, and lists the directory that it returns",
    async ({ publish, provider }) => {
      const repository = await publish(oneCommit(start, [['shop-agents/a.md', 'a']]));
      const names: string[] = [];
      const listing = await provider.listFiles(repository, {
        directory: (name) => {
          names.push(name);
          return `${name}-agents`;
        },
        accepts: () => true,
      });
      assert.deepEqual(names, ['shop']);
      assert.deepEqual(listing, {
        directory: 'shop-agents',
        files: [{ path: 'shop-agents/a.md', blobId: '2e65efe2a145dda7ee51d1741299f848e5bf752e', createdAt: start * 1000 }],
      });
    },
  ],
  [
    'returns an empty list and no default branch for an empty repository',
    async ({ publish, provider, list }) => {
      const repository = await publish({ commits: [] });
      assert.deepEqual(await list(repository), []);
      assert.deepEqual(await provider.find(repository), { path: repository, defaultBranch: null });
    },
  ],
  [
    'fails with repository_not_found if there is no such repository',
    async ({ publish, provider }) => {
      const repository = await publish(oneCommit(start, [[file, 'a']]));
      const patterns = ['acme/sh*p', 'acme/sho?', 'acme/[s]hop', 'acme/sho%70', 'acme/shop?x', 'acme/shop#x'];
      for (const missing of ['acme/missing', 'nobody/shop', `${repository}/deeper`, ...patterns]) {
        const isRefusal = (error: unknown): boolean =>
          isFailureOf(error, 'repository_not_found') && error.context.repository === missing;
        const expected = `fails with repository_not_found for ${missing}`;
        await assertFails(provider.listFiles(missing, everything), isRefusal, `listFiles ${expected}`);
        await assertFails(provider.find(missing), isRefusal, `find ${expected}`);
      }
    },
  ],
  [
    'finds a renamed repository by its new name, and by its old name as declared',
    async ({ publish, rename, provider, list, traits }) => {
      const files = [file, 'shop-agents/a.md', 'store-agents/a.md'].map((path) => [path, '1'] as const);
      const former = await publish(oneCommit(start, files));
      const current = former.replace(/shop$/u, 'store');
      await provider.find(former);
      // The provider may keep what it has listed under the former name.
      await list(former);
      await rename(former, current);
      assert.deepEqual(await list(current), [[file, start]]);
      assert.equal((await provider.find(current)).path, current);
      const query = { directory: (name: string) => `${name}-agents`, accepts: () => true };
      assert.equal((await provider.listFiles(current, query)).directory, 'store-agents');
      await decidedBy(traits, 'formerName', async (trait) => {
        if (trait === 'nothing') {
          await assertFails(provider.find(former), isNotFound, 'find finds nothing by the former name');
          await assertFails(provider.listFiles(former, query), isNotFound, 'listFiles finds nothing by the former name');
          return;
        }
        assert.equal((await provider.find(former)).path, current);
        const { directory, files } = await provider.listFiles(former, query);
        assert.deepEqual([directory, files.map(({ path }) => path)], ['store-agents', ['store-agents/a.md']]);
      });
    },
  ],
  [
    'reads only the default branch',
    async ({ publish, provider, list }) => {
      const repository = await publish({
        defaultBranch: 'trunk',
        branches: { main: 'other', trunk: 'default' },
        commits: [
          { id: 'root', at: start, files: [['x', '1']] },
          {
            id: 'other',
            parents: ['root'],
            at: start + 10,
            files: [
              [file, '1'],
              [`${agents}/other.md`, '1'],
            ],
          },
          { id: 'default', parents: ['root'], at: start + 20, files: [[file, '1']] },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start + 20]]);
      assert.deepEqual(await provider.find(repository), { path: repository, defaultBranch: 'trunk' });
    },
  ],
  [
    'returns new commits, deletions and a rewritten history at once',
    async ({ publish, list }) => {
      const first = { id: 'first', at: start, files: [[file, '1'] as const] };
      const second = { id: 'second', at: start + 10, files: [[`${agents}/b.md`, '1'] as const] };
      const third = { id: 'third', at: start + 20, files: [[file, null] as const] };
      const rewritten = { id: 'rewritten', at: start + 30, files: [[file, '1'] as const] };
      const repository = await publish({ commits: [first] });
      assert.deepEqual(await list(repository), [[file, start]]);
      await publish({ commits: [first, second] });
      assert.deepEqual(await list(repository), [
        [file, start],
        [`${agents}/b.md`, start + 10],
      ]);
      await publish({ commits: [first, second, third] });
      assert.deepEqual(await list(repository), [[`${agents}/b.md`, start + 10]]);
      await publish({ commits: [rewritten] });
      assert.deepEqual(await list(repository), [[file, start + 30]]);
      // The same file, in a history that does not have the earlier commit.
      await publish({ commits: [{ ...rewritten, at: start + 40 }] });
      assert.deepEqual(await list(repository), [[file, start + 40]]);
      await publish({ commits: [] });
      assert.deepEqual(await list(repository), []);
    },
  ],
  [
    'does not mix up repositories or directories',
    async ({ publish, list }) => {
      const shop = await publish({ commits: [{ id: 'shop', at: start, files: [[file, '1'], ['docs/a.md', '1']] }] });
      const tool = await publish({ commits: [{ id: 'tool', at: start + 10, files: [[file, '1']] }] }, 'acme/tool');
      assert.deepEqual(await list(shop), [[file, start]]);
      assert.deepEqual(await list(tool), [[file, start + 10]]);
      assert.deepEqual(await list(shop, 'docs'), [['docs/a.md', start]]);
      assert.deepEqual(await list(tool, 'docs'), []);
    },
  ],
  [
    'returns the same result to many concurrent callers',
    async ({ publish, list }) => {
      const repository = await publish(oneCommit(start, [[file, '1']]));
      const answers = await Promise.all(Array.from({ length: 20 }, () => list(repository)));
      for (const answer of answers) assert.deepEqual(answer, [[file, start]]);
    },
  ],
  [
    'rejects with the reason of a signal that has fired, and serves other callers',
    async ({ publish, provider, list }) => {
      const repository = await publish(oneCommit(start, [[file, '1']]));
      const reason = new Error('the caller has left');
      const isReason = (error: unknown): boolean => error === reason;
      const expected = 'rejects with the reason of the signal';
      await assertFails(provider.listFiles(repository, everything, AbortSignal.abort(reason)), isReason, `listFiles ${expected}`);
      await assertFails(provider.find(repository, AbortSignal.abort(reason)), isReason, `find ${expected}`);
      const controller = new AbortController();
      const leaving = provider.listFiles(repository, everything, controller.signal);
      controller.abort(reason);
      await assertFails(leaving, isReason, `listFiles ${expected}`);
      assert.deepEqual(await list(repository), [[file, start]]);
    },
  ],
  [
    'reports its health in one line, and can be closed twice',
    async ({ provider }) => {
      assert.match(provider.name, /^[a-z][a-z-]*$/u);
      for (const host of provider.hosts) assert.match(host, /^[^A-Z/@\s]+$/u, 'a host is lower case, without a scheme or path');
      const { ok, detail } = await provider.check();
      assert.equal(ok, true, detail);
      assert.match(detail, /^[^\n]+$/u);
      await provider.close();
      await provider.close();
    },
  ],
];

function isNotFound(error: unknown): boolean {
  return isFailureOf(error, 'repository_not_found');
}

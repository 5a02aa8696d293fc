import assert from 'node:assert/strict';
import { agents, type StageCase } from './git-provider-harness.ts';
import { decidedBy } from './contract.ts';

const start = 1_600_000_000;
const file = `${agents}/a.md`;
const other = 'src/main.ts';

export const dateCases: readonly StageCase[] = [
  [
    'dates a file by the commit that adds it, not by later changes',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'before', at: start, files: [[other, '1']] },
          { id: 'brought', at: start + 10, files: [[file, '1']] },
          { id: 'changed', at: start + 20, files: [[file, '2']] },
          { id: 'mode', at: start + 30, files: [[file, { executable: '2' }]] },
          { id: 'after', at: start + 40, files: [[other, '2']] },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start + 10]]);
    },
  ],
  [
    'dates a file by the committer date, not by the author date',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'late', at: start + 1000, authoredAt: start, files: [[file, '1']] },
          { id: 'early', at: start + 2000, authoredAt: start + 9000, files: [[`${agents}/b.md`, '1']] },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start + 1000], [`${agents}/b.md`, start + 2000]]);
    },
  ],
  [
    'dates a file by the last page of its history, after 250 changes',
    async ({ publish, list }) => {
      const changes = Array.from({ length: 250 }, (_, index) => index + 1);
      const repository = await publish({
        commits: [
          { id: 'brought', at: start, files: [[file, '0']] },
          ...changes.map((change) => ({ id: `c${change}`, at: start + change, files: [[file, String(change)] as const] })),
        ],
      });
      assert.deepEqual(await list(repository), [[file, start]]);
    },
  ],
  [
    'dates a file that moved by the commit that moved it',
    async ({ publish, list }) => {
      const content = 'the same content, which a search for renames would find\n'.repeat(10);
      const repository = await publish({
        commits: [
          { id: 'brought', at: start, files: [[`${agents}/old.md`, content]] },
          {
            id: 'moved',
            at: start + 10,
            files: [
              [`${agents}/old.md`, null],
              [file, content],
            ],
          },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start + 10]]);
    },
  ],
  [
    'dates a file that was deleted and added again by its first commit',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'first life', at: start, files: [[file, '1']] },
          { id: 'deleted', at: start + 10, files: [[file, null]] },
          { id: 'between', at: start + 20, files: [[other, '1']] },
          { id: 'second life', at: start + 30, files: [[file, '2']] },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start]]);
    },
  ],
  [
    'counts a time in which the path was a link',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'link', at: start, files: [[file, { link: 'b.md' }]] },
          { id: 'file', at: start + 10, files: [[file, '1']] },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start]]);
    },
  ],
  [
    'dates a file of a merged branch by the commit on that branch',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'root', at: start, files: [[other, '1']] },
          { id: 'side', parents: ['root'], at: start + 10, files: [[file, '1']] },
          { id: 'trunk', parents: ['root'], at: start + 20, files: [[`${agents}/b.md`, '1']] },
          { id: 'merge', parents: ['trunk', 'side'], at: start + 30, files: [[file, '1']] },
          { id: 'after', at: start + 40, files: [[other, '2']] },
        ],
      });
      assert.deepEqual(await list(repository), [
        [file, start + 10],
        [`${agents}/b.md`, start + 20],
      ]);
    },
  ],
  [
    'dates a file that only a merge adds by the merge',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'root', at: start, files: [[`${agents}/root.md`, '1']] },
          { id: 'side', parents: ['root'], at: start + 10, files: [[`${agents}/side.md`, '1']] },
          { id: 'trunk', parents: ['root'], at: start + 20, files: [[other, '1']] },
          {
            id: 'evil merge',
            parents: ['trunk', 'side'],
            at: start + 30,
            files: [
              [`${agents}/side.md`, '1'],
              [file, 'from nowhere'],
            ],
          },
        ],
      });
      assert.deepEqual(await list(repository), [
        [file, start + 30],
        [`${agents}/root.md`, start],
        [`${agents}/side.md`, start + 10],
      ]);
    },
  ],
  [
    'dates a file that two branches add, and a merge joins, by the earlier commit',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'root', at: start, files: [[other, '1']] },
          { id: 'side', parents: ['root'], at: start + 10, files: [[file, 'side']] },
          { id: 'trunk', parents: ['root'], at: start + 20, files: [[file, 'trunk']] },
          { id: 'merge', parents: ['trunk', 'side'], at: start + 30, files: [[file, 'both']] },
        ],
      });
      assert.deepEqual(await list(repository), [[file, start + 10]]);
    },
  ],
  [
    'follows every parent of an octopus merge, and several root commits',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'root', at: start, files: [[`${agents}/0.md`, '0']] },
          { id: 'one', parents: ['root'], at: start + 10, files: [[`${agents}/1.md`, '1']] },
          { id: 'two', parents: ['root'], at: start + 20, files: [[`${agents}/2.md`, '2']] },
          { id: 'foreign root', parents: [], at: start + 5, files: [[`${agents}/3.md`, '3']] },
          {
            id: 'octopus',
            parents: ['one', 'two', 'foreign root'],
            at: start + 30,
            files: [
              [`${agents}/2.md`, '2'],
              [`${agents}/3.md`, '3'],
              [`${agents}/4.md`, '4'],
            ],
          },
        ],
      });
      assert.deepEqual(await list(repository), [
        [`${agents}/0.md`, start],
        [`${agents}/1.md`, start + 10],
        [`${agents}/2.md`, start + 20],
        [`${agents}/3.md`, start + 5],
        [`${agents}/4.md`, start + 30],
      ]);
    },
  ],
  [
    'counts or ignores history that a merge discarded, as declared',
    async ({ publish, list, traits }) => {
      const repository = await publish({
        commits: [
          { id: 'root', at: start, files: [[other, '1']] },
          { id: 'side', parents: ['root'], at: start + 10, files: [[file, 'side']] },
          { id: 'trunk', parents: ['root'], at: start + 20, files: [[file, 'trunk']] },
          { id: 'ours', parents: ['trunk', 'side'], at: start + 30, files: [] },
        ],
      });
      const listed = await list(repository);
      await decidedBy(traits, 'discardedHistory', (trait) => {
        assert.deepEqual(listed, [[file, { counts: start + 10, ignored: start + 20 }[trait]]]);
      });
    },
  ],
  [
    'gives the declared date if a clock was wrong',
    async ({ publish, list, traits }) => {
      const repository = await publish({
        commits: [
          { id: 'brought', at: start + 20, files: [[file, '1']] },
          { id: 'changed', at: start + 10, files: [[file, '2']] },
          { id: 'after', at: start + 30, files: [[other, '1']] },
        ],
      });
      const listed = await list(repository);
      await decidedBy(traits, 'clockSkew', (trait) => {
        assert.deepEqual(listed, [[file, { introduction: start + 20, 'oldest-date': start + 10 }[trait]]]);
      });
    },
  ],
  [
    'dates files at the epoch and after the year 2038',
    async ({ publish, list }) => {
      const repository = await publish({
        commits: [
          { id: 'epoch', at: 0, files: [[file, '1']] },
          { id: 'late', at: 4_000_000_000, files: [[`${agents}/b.md`, '1']] },
        ],
      });
      assert.deepEqual(await list(repository), [
        [file, 0],
        [`${agents}/b.md`, 4_000_000_000],
      ]);
    },
  ],
];

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import { createRepository, git, type CommitDescription, type Entry } from '../../../contracts/git-repository.ts';
import { agents, list, start } from '../support.ts';

const paths = ['a.md', 'b.md', 'deep/c.md', 'deep/er/d.md'].map((name) => `${agents}/${name}`);

/** The entry of each path in a commit. Null if the commit does not have the path. */
type Content = readonly (Entry | null)[];

interface Commit {
  /** Each number selects an earlier commit. A root commit has none. */
  readonly parents: readonly number[];
  readonly at: number;
  readonly content: Content;
}

const entry = fc.oneof(
  { weight: 3, arbitrary: fc.constant(null) },
  { weight: 4, arbitrary: fc.constantFrom<Entry[]>('1', '2') },
  { weight: 1, arbitrary: fc.constantFrom<Entry[]>({ link: 'x' }, { executable: '1' }, { submodule: '1'.repeat(40) }) },
);

// Only a few different dates, so that they are often equal or run backwards.
const commit = fc.record({
  parents: fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.nat()) },
    { weight: 3, arbitrary: fc.array(fc.nat(), { minLength: 2, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.constant([]) },
  ),
  at: fc.integer({ min: start, max: start + 8 }),
  content: fc.tuple(...paths.map(() => entry)),
});

function parentsOf({ parents }: Commit, index: number): number[] {
  return index === 0 ? [] : [...new Set(parents.map((parent) => parent % index))];
}

function describeCommits(commits: readonly Commit[]): CommitDescription[] {
  return commits.map((commit, index) => ({
    id: `c${index}`,
    at: commit.at,
    parents: parentsOf(commit, index).map((parent) => `c${parent}`),
    // Removes first what the first parent has below the directory.
    files: [[agents, null], ['index', `${index}`], ...paths.map((path, at) => [path, commit.content[at] ?? null] as const)],
  }));
}

/** The listing by its definition: the earliest date of a commit that has the path while none of its parents has it. */
function expected(commits: readonly Commit[], head: number): (readonly [string, number])[] {
  const reachable = new Set([head]);
  for (const index of reachable) for (const parent of parentsOf(commits[index]!, index)) reachable.add(parent);
  return paths.flatMap((path, at) => {
    const entry = commits[head]!.content[at];
    const regular = typeof entry === 'string' || (entry !== null && entry !== undefined && 'executable' in entry);
    if (!regular) return [];
    const has = (index: number): boolean => commits[index]!.content[at] !== null;
    const adds = [...reachable].filter((index) => has(index) && !parentsOf(commits[index]!, index).some(has));
    return [[path, Math.min(...adds.map((index) => commits[index]!.at))] as const];
  });
}

test('a listing is correct with the cache after random moves of the branch in a random history', async () => {
  const history = fc.array(commit, { minLength: 1, maxLength: 14 });
  const moves = fc.array(fc.nat(), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(history, moves, async (commits, heads) => {
      const root = await mkdtemp(join(tmpdir(), 'skep-local-git-'));
      const provider = createLocalGitProvider({ root });
      try {
        const gitDir = join(root, 'shop');
        await createRepository(gitDir, {
          commits: describeCommits(commits),
          branches: Object.fromEntries(commits.map((_, index) => [`c${index}`, `c${index}`])),
        });
        const oids = (await git(gitDir, ['for-each-ref', '--sort=version:refname', '--format=%(objectname)', 'refs/heads/c*']))
          .trim()
          .split('\n');
        for (const move of heads) {
          const head = move % commits.length;
          await writeFile(join(gitDir, 'refs/heads/main'), `${oids[head]}\n`);
          expect(await list(provider, 'shop')).toEqual(expected(commits, head));
        }
      } finally {
        await provider.close();
        await rm(root, { recursive: true, force: true });
      }
    }),
    { numRuns: 60 },
  );
});

import fc from 'fast-check';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { createRepository, git, type CommitDescription } from '../../../contracts/git-repository.ts';
import { startGitLab } from '../../../doubles/gitlab/index.ts';
import { agents, list, recordingCache, start } from '../support.ts';
import { token } from './support.ts';

// Few contents, so that different branches often have the same files.
const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const runs = Number(process.env['SKEP_TEST_RUNS'] ?? 6);

const file = fc.record({ name: fc.constantFrom(...names), content: fc.constantFrom('1', '1', '2', null) });

/**
 * A step of the trunk: a commit, or a branch that starts some steps back and its merge. The merge takes the files of the
 * branch or of the trunk, or has its own. The trunk may be its second parent.
 */
const step = fc.record({
  kind: fc.constantFrom('commit', 'merge', 'merge', 'ours', 'own', 'turned'),
  back: fc.nat(5),
  files: fc.uniqueArray(file, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
  skew: fc.integer({ min: -30, max: 30 }),
});

type Drawn = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The commits of the trunk are t0, t1 and so on. */
function describeCommits(drawn: readonly Drawn[]): CommitDescription[] {
  const root: CommitDescription = { id: 't0', at: start, files: [['other', '1']] };
  const rest = drawn.flatMap(({ kind, back, files, skew }, index): CommitDescription[] => {
    const [id, before, at] = [`t${index + 1}`, `t${index}`, start + (index + 1) * 10 + skew];
    const changes = files.map(({ name, content }) => [`${agents}/${name}.md`, content] as const);
    if (kind === 'commit') return [{ id, parents: [before], at, files: changes }];
    const side = { id: `s${index}`, parents: [`t${Math.max(0, index - back)}`], at: at - 5, files: changes };
    const own = changes.map(([path]) => [path, 'own'] as const);
    const merged = { merge: changes, ours: [], own, turned: [] }[kind];
    return [side, { id, parents: kind === 'turned' ? [side.id, before] : [before, side.id], at, files: merged }];
  });
  return [root, ...rest];
}

test('a listing is the same with any earlier listing in the cache as without a cache', async () => {
  const history = fc.array(step, { minLength: 10, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(history, async (drawn) => {
      const root = await mkdtemp(join(tmpdir(), 'skep-gitlab-'));
      const host = await startGitLab();
      const listingCache = recordingCache();
      const provider = createGitLabProvider({ url: host.url, token, clock: createSystemClock(), listingCache });
      try {
        const gitDir = join(root, 'shop.git');
        const commits = describeCommits(drawn);
        await createRepository(gitDir, { commits, branches: Object.fromEntries(commits.map(({ id }) => [id, id])) });
        host.projects.put('acme/shop', gitDir);
        const refs = await git(gitDir, ['for-each-ref', '--format=%(refname:short) %(objectname)', 'refs/heads/t*']);
        const oids = new Map(refs.trim().split('\n').map((line) => line.split(' ') as [string, string]));
        const listAt = async (id: string): Promise<(readonly [string, number])[]> => {
          await writeFile(join(gitDir, 'refs/heads/main'), `${oids.get(id)}\n`);
          return await list(provider);
        };
        const anew = [];
        for (const id of oids.keys()) {
          listingCache.entries = new Map();
          const listing = await listAt(id);
          expect(listing.length).toBe(await countFiles(gitDir));
          anew.push({ id, listing, known: new Map(listingCache.entries) });
        }
        for (const { known } of anew) {
          for (const { id, listing } of anew) {
            listingCache.entries = new Map(known);
            expect(await listAt(id)).toEqual(listing);
          }
        }
        expect(host.unexpected).toEqual([]);
      } finally {
        await provider.close();
        await host.close();
        await rm(root, { recursive: true, force: true });
      }
    }),
    { numRuns: runs, endOnFailure: true },
  );
}, 30_000 * runs);

async function countFiles(gitDir: string): Promise<number> {
  const output = await git(gitDir, ['ls-tree', '-r', '--name-only', 'HEAD', '--', agents]);
  return output.split('\n').filter((line) => line !== '').length;
}

import fc from 'fast-check';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { DatedFile } from '../../../../src/ports/git-provider.ts';
import { createRepository, git, type CommitDescription } from '../../../contracts/git-repository.ts';
import { startGitLab } from '../../../doubles/gitlab/index.ts';
import { agents, everything, recordingCache, start } from '../support.ts';
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

test('a listing is as without a cache, but a file without changes since an earlier commit keeps its date', async () => {
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
        const oids = (await git(gitDir, ['for-each-ref', '--format=%(objectname)', 'refs/heads/t*'])).trim().split('\n');
        const listAt = async (oid: string): Promise<Listing> => {
          await writeFile(join(gitDir, 'refs/heads/main'), `${oid}\n`);
          const { files } = await provider.listFiles('acme/shop', everything);
          return new Map(files.map(({ path, blobId, createdAt }) => [path, { blobId, createdAt }]));
        };
        const anew = [];
        for (const oid of oids) {
          listingCache.entries = new Map();
          const listing = await listAt(oid);
          expect(listing.size).toBe(await countFiles(gitDir));
          anew.push({ oid, listing, known: new Map(listingCache.entries) });
        }
        for (const earlier of anew) {
          const descendants = (await git(gitDir, ['for-each-ref', '--format=%(objectname)', '--contains', earlier.oid])).split('\n');
          for (const { oid, listing } of anew) {
            listingCache.entries = new Map(earlier.known);
            expect(await listAt(oid)).toEqual(descendants.includes(oid) ? withKnownDates(listing, earlier.listing) : listing);
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

type Listing = ReadonlyMap<string, Pick<DatedFile, 'blobId' | 'createdAt'>>;

function withKnownDates(listing: Listing, earlier: Listing): Listing {
  return new Map([...listing].map(([path, file]) => {
    const before = earlier.get(path);
    return [path, before?.blobId === file.blobId ? before : file];
  }));
}

async function countFiles(gitDir: string): Promise<number> {
  const output = await git(gitDir, ['ls-tree', '-r', '--name-only', 'HEAD', '--', agents]);
  return output.split('\n').filter((line) => line !== '').length;
}

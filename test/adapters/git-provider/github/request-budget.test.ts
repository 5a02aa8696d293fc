import { describe, expect, test } from 'vitest';
import { git, type RepositoryDescription } from '../../../contracts/git-repository.ts';
import { answerWith } from '../../../doubles/github/faults.ts';
import { agents, everything, failureOf, list, recordingCache, start } from '../support.ts';
import { conditional, createScene, manyFiles, simple, simpleListing } from './support.ts';

const dated = (files: number): (readonly [string, number])[] =>
  Array.from({ length: files }, (_, index) => [`${agents}/${index}.md`, start] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));

describe('The first listing', () => {
  test.each([
    [0, 1],
    [1, 2],
    [100, 2],
    [101, 3],
    [300, 4],
  ])('of %i files takes %i requests if their histories are short', async (files, requests) => {
    const scene = await createScene();
    await scene.publish({ commits: [{ id: 'x', at: start, files: [['x', 'x']] }, ...manyFiles(files).commits] });
    expect(await list(scene.provider())).toEqual(dated(files));
    expect(scene.asked()).toHaveLength(requests);
  });

  test.each([
    [1, 3],
    [100, 3],
    [201, 5],
  ])('of %i files takes %i requests if their histories are long', async (files, requests) => {
    const scene = await createScene();
    await scene.publish(manyFiles(files, 102));
    expect(await list(scene.provider())).toEqual(dated(files));
    expect(scene.asked()).toHaveLength(requests);
  });

  test('requests no history of a file that the query does not accept', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(150));
    const query = { directory: () => agents, accepts: (path: string) => path === '7.md' };
    expect((await scene.provider().listFiles('acme/shop', query)).files).toHaveLength(1);
    expect(scene.asked()).toEqual(['POST /graphql', 'POST /graphql 1 histories']);
  });
});

describe('A listing of an unchanged repository', () => {
  test('takes one conditional request, also if the query accepts other files', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(120));
    const provider = scene.provider();
    await list(provider);
    scene.asked();
    for (let time = 0; time < 3; time += 1) {
      expect(await list(provider)).toEqual(dated(120));
      expect(scene.asked()).toEqual([conditional]);
    }
    const query = { ...everything, accepts: (path: string) => path === '7.md' };
    expect((await provider.listFiles('acme/shop', query)).files).toHaveLength(1);
    expect(scene.asked()).toEqual([conditional]);
  });

  test('takes one request if the ETag changed, as after an App has got a new token', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    const provider = scene.provider();
    await list(provider);
    const { gitDir = '' } = scene.double.repositories.find('acme/shop')?.repository ?? {};
    const oid = (await git(gitDir, ['rev-parse', 'HEAD'])).trim();
    scene.double.faults.plan({ act: answerWith({ status: 200, headers: { etag: 'W/"another"' }, body: oid }), times: 1 });
    scene.asked();
    expect(await list(provider)).toEqual(simpleListing);
    expect(await list(provider)).toEqual(simpleListing);
    expect(scene.double.requests.map(({ headers }) => headers['if-none-match'])).toEqual([`"${oid}"`, 'W/"another"']);
  });

  test('takes one request after a restart, but all of them if the cache was lost', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(3));
    const listingCache = recordingCache();
    await list(scene.provider({ listingCache }));
    scene.asked();
    expect(await list(scene.provider({ listingCache }))).toEqual(dated(3));
    expect(scene.asked()).toEqual([conditional]);
    listingCache.entries.clear();
    expect(await list(scene.provider({ listingCache }))).toEqual(dated(3));
    expect(scene.asked()).toHaveLength(2);
  });

  test('takes one request for an empty repository or a missing directory', async () => {
    const scene = await createScene();
    await scene.publish({ commits: [] }, 'acme/empty');
    await scene.publish({ commits: [{ id: 'x', at: start, files: [['x', 'x']] }] }, 'acme/bare');
    const provider = scene.provider();
    for (const name of ['acme/empty', 'acme/bare']) {
      expect(await list(provider, name)).toEqual([]);
      scene.asked();
      expect(await list(provider, name)).toEqual([]);
      expect(scene.asked()).toHaveLength(1);
    }
  });
});

describe('A listing of a changed repository', () => {
  const before: RepositoryDescription['commits'] = [
    { id: 'a', at: start, files: [[`${agents}/a.md`, '1']] },
    { id: 'b', at: start + 10, files: [[`${agents}/b.md`, '1']] },
  ];
  const head = 'GET /repos/acme/shop/commits/HEAD';

  async function changed(after: RepositoryDescription['commits']) {
    const scene = await createScene();
    await scene.publish({ commits: before });
    const provider = scene.provider();
    await list(provider);
    scene.asked();
    await scene.publish({ commits: after });
    const listing = await list(provider);
    return { listing, asked: scene.asked() };
  }

  test('requests no history if only files outside the directory changed', async () => {
    const { listing, asked } = await changed([...before, { id: 'x', at: start + 20, files: [['x', '1']] }]);
    expect(listing).toEqual([[`${agents}/a.md`, start], [`${agents}/b.md`, start + 10]]);
    expect(asked).toEqual([head, 'POST /graphql']);
  });

  test('requests only the histories of new and changed files', async () => {
    const c = { id: 'c', at: start + 20, files: [[`${agents}/c.md`, '1'] as const, [`${agents}/b.md`, '2'] as const] };
    const { listing, asked } = await changed([...before, c]);
    expect(listing).toEqual([[`${agents}/a.md`, start], [`${agents}/b.md`, start + 10], [`${agents}/c.md`, start + 20]]);
    expect(asked).toEqual([head, 'POST /graphql', 'POST /graphql 2 histories']);
  });

  test('requests all histories if the history was rewritten', async () => {
    const rewritten = [{ id: 'a and b', at: start + 30, files: before.flatMap(({ files }) => files) }];
    const { listing, asked } = await changed(rewritten);
    expect(listing).toEqual([[`${agents}/a.md`, start + 30], [`${agents}/b.md`, start + 30]]);
    expect(asked).toEqual([head, 'POST /graphql', 'POST /graphql 2 histories']);
  });
});

describe('A listing', () => {
  test('fails after `maxFiles` files, also if each directory is read by itself', async () => {
    const scene = await createScene();
    await scene.publish(manyFiles(50));
    scene.double.treeLimit = 20;
    expect(await failureOf(list(scene.anonymous({ maxFiles: 49 })))).toMatch(/^provider_failed: .*too_large.*49 files/u);
  });
});

describe('readFile()', () => {
  const blob = 'GET /repos/acme/shop/git/blobs/';

  test('takes one request for 100 callers at once, and looks for the repository if the blob is missing', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    for (const [provider, find] of [[scene.provider(), ['POST /graphql']], [scene.anonymous(), ['GET /repos/acme/shop', 'GET /repos/acme/shop/commits/HEAD']]] as const) {
      const { files: [file] } = await provider.listFiles('acme/shop', everything);
      scene.asked();
      const contents = await Promise.all(Array.from({ length: 100 }, () => provider.readFile('acme/shop', file!, 100)));
      expect(new Set(contents.map(String)).size).toBe(1);
      expect(scene.asked()).toEqual([blob + file!.blobId]);
      const missing = { path: 'a.md', blobId: '0'.repeat(40) };
      expect(await failureOf(provider.readFile('acme/shop', missing, 100))).toMatch(/^file_not_found: /u);
      expect(scene.asked()).toEqual([blob + missing.blobId, ...find]);
    }
  });

  test('fails if the file is too large, and sends no request for an invalid blob id', async () => {
    const scene = await createScene();
    await scene.publish({ commits: [{ id: 'x', at: start, files: [[`${agents}/a.md`, 'x'.repeat(2 ** 20)]] }] });
    const provider = scene.provider();
    const { files: [file] } = await provider.listFiles('acme/shop', everything);
    expect(await failureOf(provider.readFile('acme/shop', file!, 100))).toMatch(/^provider_failed: .*too_large/u);
    scene.asked();
    expect(await failureOf(provider.readFile('acme/shop', { path: 'a.md', blobId: '../trees/main' }, 100))).toMatch(/^file_not_found: /u);
    expect(scene.asked()).toEqual([]);
  });
});

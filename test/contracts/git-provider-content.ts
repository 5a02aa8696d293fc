import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { DatedFile, GitProvider } from '../../src/ports/git-provider.ts';
import { agents, type StageCase } from './git-provider-harness.ts';
import { oneCommit } from './git-repository.ts';
import { assertFails, decidedBy } from './contract.ts';

const start = 1_600_000_000;
const file = `${agents}/a.md`;
const maxBytes = 2 ** 20;
const absent = '0123456789abcdef0123456789abcdef01234567';

/** Contents that a provider changes if it treats them as text or trims them. */
const contents: readonly (readonly [name: string, content: string | Uint8Array])[] = [
  ['plain.md', 'one\ntwo\n'],
  ['no line feed at the end.md', 'one'],
  ['dos.md', 'one\r\ntwo\r\n'],
  ['old mac.md', '\rone\rtwo\r'],
  ['blank.md', '\n\n  \n'],
  ['mark.md', '\ufeffone'],
  ['languages.md', 'grüße 日本語 🐝 e\u0301 \u2028\n'],
  ['json.md', '{"content":"eA==","encoding":"base64"}'],
  ['list.md', '[1, 2]'],
  ['bytes.md', Uint8Array.from({ length: 1024 }, (_, index) => index % 256)],
  ['cut.md', Uint8Array.of(0x61, 0xf0, 0x9f, 0x90)],
  ['latin-1.md', Uint8Array.of(0x67, 0x72, 0xfc, 0xdf, 0x65)],
  ['gzip.md', Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0)],
  ['empty.md', ''],
  ['large.md', 'x'.repeat(300_000)],
  ['deploy/"odd" [name]?#%2F grüße.md', 'of an odd name'],
];

export const contentCases: readonly StageCase[] = [
  [
    'reads the content of files byte for byte',
    async ({ publish, provider }) => {
      const run = { executable: '#!/bin/sh\n' };
      const files = [...contents.map(([name, content]) => [`${agents}/${name}`, content] as const), [`${agents}/run.sh`, run] as const];
      const repository = await publish(oneCommit(start, files));
      const listed = await filesOf(provider, repository);
      assert.equal(listed.length, files.length);
      for (const [path, entry] of files) {
        const expected = Buffer.from(typeof entry === 'string' || entry instanceof Uint8Array ? entry : entry.executable);
        const found = listed.find((each) => each.path === path);
        assert.ok(found, path);
        assert.equal(found.blobId, createHash('sha1').update(`blob ${expected.length}\0`).update(expected).digest('hex'), path);
        const read = Buffer.from(await provider.readFile(repository, found, maxBytes));
        assert.ok(read.equals(expected), `${path}: ${read.length} bytes in place of ${expected.length}, or other ones`);
      }
    },
  ],
  [
    'reads a file of exactly as many bytes as allowed, and fails with provider_failed for one more',
    async ({ publish, provider }) => {
      const sizes = [0, 1, 1000, 100_000];
      const repository = await publish(oneCommit(start, sizes.map((size) => [`${agents}/${size}.md`, 'x'.repeat(size)] as const)));
      for (const found of await filesOf(provider, repository)) {
        const size = Number(/(\d+)\.md$/u.exec(found.path)?.[1]);
        assert.equal((await provider.readFile(repository, found, size)).length, size);
        const expected = `a file of ${size} bytes is too large for a limit of ${size - 1}`;
        if (size > 0) await assertFails(provider.readFile(repository, found, size - 1), isTooLarge, expected);
      }
    },
  ],
  [
    'lists a new blob id after a change of the content, and the same id after a change of the mode',
    async ({ publish, provider }) => {
      const commits = [{ id: 'first', at: start, files: [[file, 'one'] as const, [`${agents}/b.md`, 'two'] as const] }];
      const repository = await publish({ commits });
      const before = await idsOf(provider, repository);
      const change = { id: 'second', at: start + 10, files: [[file, 'two'] as const, [`${agents}/b.md`, { executable: 'two' }] as const] };
      await publish({ commits: [...commits, change] });
      const after = await idsOf(provider, repository);
      assert.notEqual(after.get(file), before.get(file));
      assert.equal(after.get(`${agents}/b.md`), before.get(`${agents}/b.md`));
      assert.equal(after.get(file), after.get(`${agents}/b.md`));
      assert.equal(await text(provider, repository, { path: file, blobId: after.get(file) ?? '' }), 'two');
    },
  ],
  [
    'fails with file_not_found if the repository does not have the content',
    async ({ publish, provider }) => {
      const repository = await publish(oneCommit(start, [[file, 'of the shop']]));
      const tool = await publish(oneCommit(start, [[file, 'of the tool']]), 'acme/tool');
      const empty = await publish({ commits: [] }, 'acme/empty');
      const [elsewhere] = await filesOf(provider, tool);
      assert.ok(elsewhere);
      assert.equal(await text(provider, tool, elsewhere), 'of the tool');
      const isRefusal = (error: unknown): boolean => isFailureOf(error, 'file_not_found') && error.context.path === file;
      for (const blobId of [elsewhere.blobId, absent, '0'.repeat(64), '', 'HEAD', `HEAD:${file}`, '--help', '../trees', `${absent}\n`]) {
        const expected = `the repository has no content with the id ${JSON.stringify(blobId)}, so readFile fails with file_not_found`;
        await assertFails(provider.readFile(repository, { path: file, blobId }, maxBytes), isRefusal, expected);
      }
      const expected = 'readFile fails with file_not_found in an empty repository';
      await assertFails(provider.readFile(empty, elsewhere, maxBytes), isRefusal, expected);
    },
  ],
  [
    'readFile fails with repository_not_found if there is no such repository',
    async ({ publish, provider }) => {
      const repository = await publish(oneCommit(start, [[file, 'a']]));
      const [found] = await filesOf(provider, repository);
      assert.ok(found);
      for (const missing of ['acme/missing', 'nobody/shop', `${repository}/deeper`, 'acme/sh*p', 'acme/shop?x', 'acme/shop#x']) {
        const isRefusal = (error: unknown): boolean =>
          isFailureOf(error, 'repository_not_found') && error.context.repository === missing;
        const expected = `readFile fails with repository_not_found for ${missing}`;
        await assertFails(provider.readFile(missing, found, maxBytes), isRefusal, expected);
      }
    },
  ],
  [
    'reads from a renamed repository by its new name, and by its old name as declared',
    async ({ publish, rename, provider, traits }) => {
      const former = await publish(oneCommit(start, [[file, 'the content']]));
      const current = former.replace(/shop$/u, 'store');
      const [found] = await filesOf(provider, former);
      assert.ok(found);
      await rename(former, current);
      assert.equal(await text(provider, current, found), 'the content');
      await decidedBy(traits, 'formerName', async (trait) => {
        if (trait === 'repository') assert.equal(await text(provider, former, found), 'the content');
        else await assertFails(provider.readFile(former, found, maxBytes), isNotFound, 'the former name finds nothing');
      });
    },
  ],
  [
    'readFile rejects with the reason of a signal that has fired, and serves other callers',
    async ({ publish, provider }) => {
      const repository = await publish(oneCommit(start, [[file, 'the content']]));
      const [found] = await filesOf(provider, repository);
      assert.ok(found);
      const reason = new Error('the caller has left');
      const isReason = (error: unknown): boolean => error === reason;
      const expected = 'readFile rejects with the reason of the signal';
      await assertFails(provider.readFile(repository, found, maxBytes, AbortSignal.abort(reason)), isReason, expected);
      const controller = new AbortController();
      const leaving = provider.readFile(repository, found, maxBytes, controller.signal);
      const staying = Array.from({ length: 20 }, () => text(provider, repository, found));
      controller.abort(reason);
      await assertFails(leaving, isReason, expected);
      for (const content of await Promise.all(staying)) assert.equal(content, 'the content');
    },
  ],
];

async function filesOf(provider: GitProvider, repository: string): Promise<readonly DatedFile[]> {
  return (await provider.listFiles(repository, { directory: () => agents, accepts: () => true })).files;
}

async function idsOf(provider: GitProvider, repository: string): Promise<ReadonlyMap<string, string>> {
  return new Map((await filesOf(provider, repository)).map(({ path, blobId }) => [path, blobId]));
}

async function text(provider: GitProvider, repository: string, { path, blobId }: Pick<DatedFile, 'path' | 'blobId'>): Promise<string> {
  return Buffer.from(await provider.readFile(repository, { path, blobId }, maxBytes)).toString('utf8');
}

function isNotFound(error: unknown): boolean {
  return isFailureOf(error, 'repository_not_found');
}

function isTooLarge(error: unknown): boolean {
  return isFailureOf(error, 'provider_failed') && error.context.reason.code === 'too_large';
}

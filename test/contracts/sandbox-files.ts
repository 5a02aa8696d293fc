import assert from 'node:assert/strict';
import { posix } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { FileEntry } from '../../src/domain/file-entry.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { ByteRange, FileVersion, WriteOptions } from '../../src/ports/sandbox-files.ts';
import type { SandboxLaunch } from '../../src/ports/sandbox-runtime.ts';
import { assertFails, assertFailure, assertRejects } from './contract.ts';
import { freeze, type SandboxRuntimeStage, type StageCase, statesToTry } from './sandbox-runtime-harness.ts';

type Content = string | Uint8Array | AsyncIterable<Uint8Array>;

const whole = ({ size }: FileEntry): ByteRange => ({ offset: 0, length: size });

const streamOf = (content: Content): ReadableStream<Uint8Array> =>
  ReadableStream.from(typeof content === 'string' || content instanceof Uint8Array ? [Buffer.from(content)] : content);

/** Returns short forms of calls for the files of one sandbox. Names are relative to its working directory. */
export function filesOf({ runtime: { files } }: SandboxRuntimeStage, { id, spec }: SandboxLaunch) {
  const at = (name: string): string => (name.startsWith('/') ? name : posix.join(spec.workingDir, name));
  const read = async (name: string, choose = whole): Promise<Buffer> =>
    await buffer((await files.read(id, at(name), choose, neverAborts)).content);
  const list = async (name: string, depth = 1): Promise<FileEntry[]> => {
    const found: FileEntry[] = [];
    for await (const entry of files.list(id, at(name), depth, neverAborts)) found.push(entry);
    return found;
  };
  return {
    at,
    read,
    text: async (name: string) => (await read(name)).toString(),
    write: (name: string, content: Content, options: WriteOptions = {}) => files.write(id, at(name), streamOf(content), options, neverAborts),
    stat: (name: string, followLink = false) => files.stat(id, at(name), followLink, neverAborts),
    make: (name: string) => files.makeDirectory(id, at(name), neverAborts),
    remove: (name: string, recursive = false) => files.remove(id, at(name), recursive, neverAborts),
    move: (from: string, to: string) => files.move(id, at(from), at(to), neverAborts),
    list,
    names: async (name: string, depth = 1) =>
      (await list(name, depth)).map(({ path }) => posix.relative(at(name), path)).toSorted(),
  };
}

export async function into(state: 'running' | 'frozen' | 'stopped', { runtime }: SandboxRuntimeStage, { id }: SandboxLaunch): Promise<void> {
  if (state === 'frozen') await freeze(runtime, id);
  if (state === 'stopped') await runtime.stop(id);
}

const binary = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 31) % 256);

const states = statesToTry.map(([state, ...conditions]): StageCase => [
  `reads, writes, lists and removes files while the sandbox is ${state}, and does not change its state`,
  async (stage) => {
    const sandbox = await stage.begun('counts');
    const files = filesOf(stage, sandbox);
    await files.write('old/script', 'first\n', { mode: 0o750 });
    await into(state, stage, sandbox);

    const written = await files.write('old/script', 'second\n');
    assert.deepEqual([written.path, written.type, written.size, written.mode], [files.at('old/script'), 'file', 7, 0o750]);
    assert.deepEqual(await files.stat('old/script'), written);
    // Only the archive of a sandbox that does not run has whole seconds.
    if (state === 'running') assert.deepEqual((await files.list('old')).map(({ modifiedAt }) => modifiedAt), [written.modifiedAt]);
    assert.equal(await files.text('old/script'), 'second\n');
    assert.equal((await files.write('new/deep/file', binary, { size: binary.length })).mode, 0o644);
    assert.ok((await files.read('new/deep/file')).equals(binary), 'the content of new/deep/file differs');
    assert.equal(await files.make('new/empty'), true);
    assert.equal(await files.make('new/empty'), false);
    assert.deepEqual(await files.names('new'), ['deep', 'empty']);
    assert.deepEqual(await files.names('new', 2), ['deep', 'deep/file', 'empty']);
    await files.remove('new/deep/file');
    await assertFailure(files.read('new/deep/file'), 'file_not_found');
    await files.remove('new', true);
    await assertFailure(files.stat('new'), 'file_not_found');
    await assertFailure(files.remove('new', true), 'file_not_found');

    assert.equal((await stage.runtime.inspect(sandbox.id)).state, state);
    await stage.resume(sandbox);
    assert.equal(await stage.readFile(sandbox.id, 'old/script'), 'second\n');
  },
  ...conditions,
]);

export const pieces = async function* pieces(count: number, end: () => void): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index += 1) yield new Uint8Array(256 * 1024).fill(index);
  end();
};

export const sandboxFileCases: readonly StageCase[] = [
  ...states,
  [
    'reads the requested range of a file, also beyond its end',
    async (stage) => {
      const files = filesOf(stage, await stage.begun('counts'));
      await files.write('binary', binary);
      await files.write('empty', new Uint8Array(0));
      const part = (name: string, offset: number, length: number) => files.read(name, () => ({ offset, length }));
      for (const [offset, length] of [[0, 1], [69_999, 1], [511, 2], [30_000, 40_000], [69_000, 5000], [70_000, 10], [5, 0]] as const) {
        assert.ok((await part('binary', offset, length)).equals(binary.subarray(offset, offset + length)), `${length} bytes from ${offset} on differ`);
      }
      assert.equal((await part('empty', 0, 10)).length, 0);
      assert.equal((await files.stat('empty')).size, 0);
      const thrown = new Error('no part suits');
      await assertRejects(files.read('binary', () => { throw thrown; }), thrown);
      assert.equal((await files.read('binary')).length, 70_000);
    },
    'can share',
  ],
  [
    'checks a file before its content is read and before it is replaced, and replaces one file after the other',
    async (stage) => {
      const files = filesOf(stage, await stage.begun('counts'));
      const refused = new Error('another version is there');
      const writeOver = (expected: FileVersion | null, content: Content) => files.write('guarded/file', content, {
        check: (found) => {
          if (found?.size !== expected?.size || found?.modifiedAt !== expected?.modifiedAt) throw refused;
        },
      });
      const first = await writeOver(null, 'first');
      await assertRejects(writeOver(null, 'second'), refused);
      await writeOver(first, 'second');
      const replacing = async function* replacing() {
        await files.write('guarded/file', 'other');
        yield Buffer.from('third');
      };
      await assertRejects(writeOver(await files.stat('guarded/file'), replacing()), refused);
      const found = await files.stat('guarded/file');
      const writers = await Promise.allSettled(['a', 'bb', 'ccc', 'dddd'].map((content) => writeOver(found, content)));
      assert.equal(writers.filter(({ status }) => status === 'fulfilled').length, 1);
      assert.deepEqual(await files.names('guarded'), ['file']);
    },
  ],
  [
    'can read a file again after a read was cancelled or its signal fired',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      await files.write('big', pieces(40, () => {}), { size: 40 * 256 * 1024 });
      const reader = (await stage.runtime.files.read(sandbox.id, files.at('big'), whole, neverAborts)).content.getReader();
      assert.equal((await reader.read()).done, false);
      await reader.cancel();
      const controller = new AbortController();
      const { content } = await stage.runtime.files.read(sandbox.id, files.at('big'), whole, controller.signal);
      const reason = new Error('no longer wanted');
      controller.abort(reason);
      await assertRejects(text(content), reason, 'the content');
      assert.equal((await files.read('big')).length, 40 * 256 * 1024);
    },
    'can share',
  ],
  [
    'returns either the whole old file or the whole new file during a write',
    async (stage) => {
      const files = filesOf(stage, await stage.begun('counts'));
      const sizes = [100_000, 300_000];
      const contentOf = (turn: number) => Buffer.alloc(sizes[turn % 2] ?? 0, turn);
      await files.write('file', contentOf(0));
      const over = new AbortController();
      const torn: number[] = [];
      const readers = Array.from({ length: 2 }, async () => {
        while (!over.signal.aborted) {
          const found = await files.read('file');
          if (!found.equals(contentOf(found[0] ?? 0))) torn.push(found.length);
        }
      });
      for (let turn = 1; turn <= 4; turn += 1) await files.write('file', contentOf(turn));
      await Promise.all([files.write('file', contentOf(5)), files.write('file', contentOf(6))]);
      over.abort();
      await Promise.all(readers);
      assert.deepEqual(torn, [], 'the lengths of contents that mix two writes');
      assert.deepEqual((await files.names('.')).filter((name) => name.startsWith('.skep')), []);
    },
    'can share',
  ],
  [
    'moves files and directories, and replaces only files',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      await files.write('from/file', 'moved\n');
      await files.write('there', 'old\n');
      await files.move('from/file', 'there');
      assert.equal(await files.text('there'), 'moved\n');
      await files.move('there', 'made/above/file');
      await files.move('made', 'from/made');
      assert.deepEqual(await files.names('from', 3), ['made', 'made/above', 'made/above/file']);
      await files.write('file', '');
      await assertFailure(files.move('file', 'from'), 'wrong_file_type');
      const isOfTarget = (error: unknown): boolean =>
        isFailureOf(error, 'wrong_file_type') && error.context.path === files.at('file') && error.context.fileType === 'file';
      await assertFails(files.move('from', 'file'), isOfTarget, 'the move onto a file names that file');
      await assertFailure(files.move('nothing', 'else'), 'file_not_found');
      await stage.runtime.stop(sandbox.id);
      await files.move('file', 'other').catch((error: unknown) => assert.ok(isFailureOf(error, 'sandbox_not_running'), String(error)));
      assert.equal((await stage.runtime.inspect(sandbox.id)).state, 'stopped');
    },
  ],
  [
    'makes a directory for callers that ask for it at once',
    async (stage) => {
      const files = filesOf(stage, await stage.begun('counts'));
      const made = await Promise.all(Array.from({ length: 8 }, () => files.make('asked/at/once')));
      assert.ok(made.includes(true), 'no caller made it');
      assert.equal(await files.make('asked/at/once'), false);
      assert.deepEqual(await files.names('asked', 3), ['at', 'at/once']);
    },
    'can share',
  ],
  [
    'writes content of unknown length',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      assert.equal((await files.write('unknown', pieces(20, () => {}), { mode: 0o600 })).size, 20 * 256 * 1024);
      const found = await files.read('unknown');
      for (let index = 0; index < 20; index += 1) assert.equal(found[index * 256 * 1024], index, `piece ${index}`);
      assert.equal((await files.stat('unknown')).mode, 0o600);
      await stage.runtime.stop(sandbox.id);
      await files.write('unknown', pieces(20, () => {})).catch((error: unknown) => assert.ok(isFailureOf(error, 'sandbox_not_running'), String(error)));
      assert.deepEqual((await files.names('.')).filter((name) => name.startsWith('.skep')), []);
    },
  ],
];

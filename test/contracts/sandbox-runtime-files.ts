import assert from 'node:assert/strict';
import { buffer } from 'node:stream/consumers';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { SandboxLaunch } from '../../src/ports/sandbox-runtime.ts';
import { assertFailure, assertRejects } from './contract.ts';
import { into } from './sandbox-files.ts';
import { hostileArchives } from './sandbox-runtime-hostile.ts';
import { type SandboxRuntimeStage, type StageCase, statesToTry } from './sandbox-runtime-harness.ts';
import { finish, readTar, tarOf, type TarItem } from './sandbox-runtime-streams.ts';

const mtime = new Date('2001-09-09T01:46:40Z');
const binary = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 31) % 256);

/** All kinds of entries in a repository. */
const tree: readonly TarItem[] = [
  [{ name: 'empty', mode: 0o644, mtime }, ''],
  [{ name: 'run.sh', mode: 0o755, mtime }, '#!/bin/sh\n'],
  [{ name: 'private', mode: 0o600, mtime }, 'mine\n'],
  [{ name: 'deep', type: 'directory', mode: 0o750, mtime }],
  [{ name: 'deep/er', type: 'directory', mode: 0o755, mtime }],
  [{ name: 'deep/er/binary', mode: 0o644, mtime }, binary],
  [{ name: `deep/${'long'.repeat(40)}/${'name'.repeat(30)}`, mode: 0o644, mtime }, 'far\n'],
  [{ name: 'Grüße 你好 🐝', mode: 0o644, mtime }, 'hi\n'],
  [{ name: 'to-absolute', type: 'symlink', linkname: '/etc/passwd', mtime }],
  [{ name: 'to-outside', type: 'symlink', linkname: '../../../../outside', mtime }],
  [{ name: 'to-nothing', type: 'symlink', linkname: 'no/such/file', mtime }],
  [{ name: 'deep/to-far', type: 'symlink', linkname: `/${'far/'.repeat(40)}`, mtime }],
];

const directoryOf = ({ spec }: SandboxLaunch): string => `${spec.workingDir}/given`;

function put({ runtime }: SandboxRuntimeStage, launch: SandboxLaunch, items: Iterable<TarItem>): Promise<void> {
  return runtime.putFiles(launch.id, directoryOf(launch), tarOf(items), neverAborts);
}

const file = (name: string, content: string): TarItem => [{ name, mode: 0o644, mtime }, content];

async function assertTree({ runtime }: SandboxRuntimeStage, launch: SandboxLaunch): Promise<void> {
  const found = await readTar(await runtime.getFiles(launch.id, directoryOf(launch), neverAborts));
  assert.equal([...found.keys()][0], 'given');
  for (const [{ name, type = 'file', mode, linkname }, content] of tree) {
    const entry = found.get(`given/${name}`);
    assert.ok(entry, `${name} is missing`);
    assert.equal(entry.header.type, type, name);
    assert.equal(entry.header.mtime.getTime(), mtime.getTime(), name);
    if (type === 'symlink') assert.equal(entry.header.linkname, linkname, name);
    else assert.equal(entry.header.mode & 0o777, mode, name);
    if (type === 'file') assert.ok(entry.content.equals(Buffer.from(content ?? '')), `the content of ${name} differs`);
  }
  const implied = `given/deep/${'long'.repeat(40)}`;
  assert.equal(found.get(implied)?.header.type, 'directory');
  assert.equal(found.size, tree.length + 2);
}

const states = statesToTry.map(([state, ...conditions]): StageCase => [
  `puts and gets files of every kind while the sandbox is ${state}`,
  async (stage) => {
    const sandbox = await stage.begun('counts');
    await into(state, stage, sandbox);
    await put(stage, sandbox, tree);
    await assertTree(stage, sandbox);
    assert.equal((await stage.runtime.inspect(sandbox.id)).state, state);
    await stage.resume(sandbox);
    assert.equal(await stage.readFile(sandbox.id, 'given/private'), 'mine\n');
    await assertTree(stage, sandbox);
  },
  ...conditions,
]);

/** The entries in the directory before each hostile archive is unpacked. */
const surroundings: readonly TarItem[] = [
  file('file', 'first\n'),
  [{ name: 'folder', type: 'directory' }],
  file('folder/inner', 'x\n'),
  [{ name: 'link', type: 'symlink', linkname: '../outside' }],
];

export const fileCases: readonly StageCase[] = [
  ...states,
  [
    "lets the sandbox's programs change the files that were put",
    async (stage) => {
      const sandbox = await stage.begun('counts');
      await put(stage, sandbox, [file('file', 'first\n')]);
      assert.deepEqual(await finish(await stage.runtime.execute(sandbox.id, { command: stage.commands.adds }, neverAborts)), {
        out: '',
        err: '',
        code: 0,
      });
      const found = await readTar(await stage.runtime.getFiles(sandbox.id, directoryOf(sandbox), neverAborts));
      assert.equal(found.get('given/file')?.content.toString(), 'first\nmore\n');
      assert.equal(found.get('given/made')?.header.type, 'directory');
    },
    'can share',
  ],
  [
    'replaces only the files, hard links and symbolic links in the archive',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      await put(stage, sandbox, [
        file('stays', 'old\n'),
        file('goes', 'old\n'),
        file('a/stays', 'old\n'),
        file('a/goes', 'old\n'),
        [{ name: 'link', type: 'symlink', linkname: 'stays' }],
      ]);
      await put(stage, sandbox, [
        file('goes', 'new\n'),
        file('a/goes', 'new\n'),
        file('link', 'no link\n'),
        [{ name: 'stays-too', type: 'link', linkname: 'stays' }],
        [{ name: 'a/goes-too', type: 'symlink', linkname: 'goes' }],
      ]);
      const text = (name: string): Promise<string | null> => stage.readFile(sandbox.id, `given/${name}`);
      assert.deepEqual(await Promise.all(['stays', 'goes', 'a/stays', 'a/goes', 'link', 'stays-too', 'a/goes-too'].map(text)), [
        'old\n', 'new\n', 'old\n', 'new\n', 'no link\n', 'old\n', 'new\n',
      ]);
    },
    'can share',
  ],
  [
    'puts and gets a single file, a link and an empty archive',
    async (stage) => {
      const { runtime } = stage;
      const sandbox = await stage.begun('counts');
      const directory = directoryOf(sandbox);
      await runtime.putFiles(sandbox.id, `${directory}/nothing`, tarOf([]), neverAborts);
      // tar packs the content of a directory in this form.
      await put(stage, sandbox, [[{ name: './', type: 'directory' }], file('./dotted', 'two\n')]);
      await put(stage, sandbox, [file('one', 'one\n'), [{ name: 'link', type: 'symlink', linkname: '/one' }]]);
      // The bit of a regular file, without which the package writes another mode.
      await put(stage, sandbox, [[{ name: 'locked', mode: 0o100_000, mtime }, 'locked\n']]);
      assert.equal((await runtime.files.stat(sandbox.id, `${directory}/locked`, true, neverAborts)).mode, 0);
      const get = async (path: string): Promise<[string, string, string][]> =>
        [...(await readTar(await runtime.getFiles(sandbox.id, path, neverAborts)))].map(([name, { header, content }]) => [
          name,
          header.type,
          content.toString() || header.linkname,
        ]);
      assert.deepEqual(await get(`${directory}/one`), [['one', 'file', 'one\n']]);
      assert.deepEqual(await get(`${directory}/dotted`), [['dotted', 'file', 'two\n']]);
      assert.deepEqual((await get(`${directory}/link`)).map(([name, type]) => [name, type]), [['link', 'symlink']]);
      assert.deepEqual((await get(`${directory}/nothing/`)).map(([name, type]) => [name, type]), [['nothing', 'directory']]);
    },
    'can share',
  ],
  [
    'refuses archives with entries that lead out of the directory or are not files',
    async ({ runtime, begun, readFile, countsOn }) => {
      const { id, spec } = await begun('counts');
      await runtime.putFiles(id, spec.workingDir, tarOf([file('outside/secret', 'kept\n')]), neverAborts);
      for (const [index, [what, items]] of hostileArchives.entries()) {
        const directory = `${spec.workingDir}/given-${index}`;
        await runtime.putFiles(id, directory, tarOf(surroundings), neverAborts);
        await assertFailure(runtime.putFiles(id, directory, tarOf(items), neverAborts), 'invalid_request', what);
        const outside = await readTar(await runtime.getFiles(id, `${spec.workingDir}/outside`, neverAborts));
        assert.deepEqual([...outside.keys()].toSorted(), ['outside', 'outside/secret'], what);
        assert.equal(outside.get('outside/secret')?.content.toString(), 'kept\n', what);
        assert.equal(await readFile(id, `given-${index}/folder/inner`), 'x\n', what);
      }
      await countsOn(id);
    },
    'can share',
  ],
  [
    'refuses an invalid or truncated archive',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const whole = await buffer(tarOf(tree));
      for (const bytes of [new Uint8Array(5_000).fill(7), whole.subarray(0, whole.length - 40_000)]) {
        const archive = ReadableStream.from<Uint8Array>([bytes]);
        await assertFailure(stage.runtime.putFiles(sandbox.id, directoryOf(sandbox), archive, neverAborts), 'invalid_request');
      }
    },
    'can share',
  ],
  [
    'fails with a specific code for an invalid path, a missing file and a missing sandbox',
    async ({ runtime, begun, launch }) => {
      const sandbox = await begun('counts');
      const stranger = launch('counts');
      for (const path of ['relative', '', '/a/../b', '/nul\0']) {
        await assertFailure(runtime.putFiles(sandbox.id, path, tarOf([]), neverAborts), 'invalid_request', `putFiles ${path}`);
        await assertFailure(runtime.getFiles(sandbox.id, path, neverAborts), 'invalid_request', `getFiles ${path}`);
      }
      await assertFailure(runtime.getFiles(sandbox.id, `${sandbox.spec.workingDir}/not/there`, neverAborts), 'file_not_found');
      await assertFailure(runtime.putFiles(stranger.id, directoryOf(stranger), tarOf([]), neverAborts), 'sandbox_not_found');
      await assertFailure(runtime.getFiles(stranger.id, directoryOf(stranger), neverAborts), 'sandbox_not_found');
    },
    'can share',
  ],
  [
    'fails with the error of the archive or the signal, and cancels the archive',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const broken = new Error('the source broke');
      const failing = ReadableStream.from(
        (async function* () {
          yield (await buffer(tarOf(tree))).subarray(0, 20_000);
          throw broken;
        })(),
      );
      await assertRejects(stage.runtime.putFiles(sandbox.id, directoryOf(sandbox), failing, neverAborts), broken);

      const controller = new AbortController();
      const reason = new Error('no longer wanted');
      const cancelled = Promise.withResolvers<void>();
      const endless = new ReadableStream<Uint8Array>(
        { pull: () => controller.abort(reason), cancel: () => cancelled.resolve() },
        { highWaterMark: 0 },
      );
      await assertRejects(stage.runtime.putFiles(sandbox.id, directoryOf(sandbox), endless, controller.signal), reason);
      await cancelled.promise;
      const unread = tarOf([]);
      await assertRejects(stage.runtime.putFiles(sandbox.id, directoryOf(sandbox), unread, AbortSignal.abort(reason)), reason);
      await assertRejects(stage.runtime.getFiles(sandbox.id, directoryOf(sandbox), AbortSignal.abort(reason)), reason);
    },
    'can share',
  ],
  [
    'puts and gets 1,000 small files, also after a cancelled read',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const items = Array.from({ length: 1_000 }, (_, index) => file(`${index % 20}/file-${index}`, `content ${index}\n`));
      await put(stage, sandbox, items);
      const stream = await stage.runtime.getFiles(sandbox.id, directoryOf(sandbox), neverAborts);
      const reader = stream.getReader();
      assert.equal((await reader.read()).done, false);
      await reader.cancel();
      const found = await readTar(await stage.runtime.getFiles(sandbox.id, directoryOf(sandbox), neverAborts));
      assert.equal(found.size, 1_021);
      for (const index of [0, 500, 999])
        assert.equal(found.get(`given/${index % 20}/file-${index}`)?.content.toString(), `content ${index}\n`, `file ${index}`);
    },
    'can share',
  ],
];

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { isFailure } from '../../src/domain/failure.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { assertFailure } from './contract.ts';
import { filesOf } from './sandbox-files.ts';
import type { SandboxRuntimeStage, StageCase } from './sandbox-runtime-harness.ts';
import { finish, readTar, tarOf } from './sandbox-runtime-streams.ts';

const link = (name: string, linkname: string) => [{ name, type: 'symlink', linkname }] as const;

/** Names that a shell, a tar or a URL could misread. The first ones have several such parts. */
const oddNames = [
  `it's "two" $HOME \`id\`;a\\b`, '-rf line\nbreak\t', '--help', '%2e%2e', '*', '#', '你好 🐝', ' ', '...', '.hidden', '=x', 'x'.repeat(255),
  '日本語', 'é', 'é'.repeat(127),
];

export const filePathCases: readonly StageCase[] = [
  [
    'follows links within the sandbox, and returns their targets',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      await files.write('real/file', 'content\n');
      const links = [link('link', 'real/file'), link('dir', 'real'), link('real/up', '../link'), link('loop', 'loop'), link('nowhere', 'no/thing')];
      await stage.runtime.putFiles(sandbox.id, files.at('.'), tarOf(links), neverAborts);

      assert.equal(await files.text('link'), 'content\n');
      assert.equal(await files.text('dir/up'), 'content\n');
      const stat = async (name: string, follow: boolean) => {
        const { path, type, target } = await files.stat(name, follow);
        return [path === files.at(name), type, target];
      };
      assert.deepEqual(await stat('link', false), [true, 'symlink', 'real/file']);
      assert.deepEqual(await stat('link', true), [true, 'file', null]);
      assert.deepEqual(await stat('nowhere', false), [true, 'symlink', 'no/thing']);
      assert.deepEqual(new Map((await files.list('dir')).map(({ path, target }) => [path, target])), new Map([
        [files.at('dir/file'), null], [files.at('dir/up'), '../link'],
      ]));
      for (const name of ['loop', 'loop/file']) await assertFailure(files.read(name), 'file_not_found', name);
      await assertFailure(files.write('loop', 'content'), 'file_not_found');
      await files.write('dir/up', 'through\n');
      assert.equal(await files.text('real/file'), 'through\n');
      assert.equal((await files.stat('link')).type, 'symlink');
      await files.write('nowhere', 'here\n');
      assert.equal((await files.stat('nowhere')).type, 'file');
      await files.remove('dir');
      await files.remove('link');
      assert.deepEqual(await files.names('real'), ['file', 'up']);
    },
    'can share',
  ],
  [
    'lists, archives and removes a file whose name is not UTF-8',
    async (stage) => {
      const { runtime, commands } = stage;
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      const { code, err } = await finish(await runtime.execute(sandbox.id, { command: commands['names in bytes'] }, neverAborts));
      assert.equal(code, 0, err);
      assert.deepEqual(await files.names('given'), ['bad\uFFFDutf']);
      const found = await readTar(await runtime.getFiles(sandbox.id, files.at('given'), neverAborts));
      assert.deepEqual([...found].map(([name, { content }]) => [name, content.toString()]), [['given', ''], ['given/bad\uFFFDutf', 'work']]);
      await files.remove('given', true);
      await assertFailure(files.stat('given'), 'file_not_found');
    },
    'can share',
  ],
  [
    'supports unusual file names',
    async (stage) => {
      const files = filesOf(stage, await stage.begun('counts'));
      for (const name of oddNames) await files.write(`odd/${name}`, name);
      assert.deepEqual(await files.names('odd'), oddNames.toSorted());
      for (const name of oddNames) assert.equal(await files.text(`odd/${name}`), name, name);
      for (const name of oddNames.slice(0, 4)) {
        await files.move(`odd/${name}`, `odd/to ${name}`);
        await files.remove(`odd/to ${name}`);
      }
      assert.deepEqual(await files.names('odd'), oddNames.slice(4).toSorted());
    },
    'can share',
  ],
  [
    'fails with a specific code for a wrong file type, a missing file or an invalid path',
    async (stage) => {
      const sandbox = await stage.begun('counts');
      const files = filesOf(stage, sandbox);
      await files.write('dir/file', 'x');
      const wrong = [
        () => files.read('dir'), () => files.list('dir/file'), () => files.write('dir', 'y'), () => files.remove('dir'),
        () => files.make('dir/file'), () => files.write('dir/file/below', 'y'), () => files.stat('dir/file/below'),
        () => files.make('dir/file/below'),
      ];
      for (const attempt of wrong) await assertFailure(attempt(), 'wrong_file_type', String(attempt));
      for (const attempt of [() => files.read('no'), () => files.list('no'), () => files.stat('no/thing'), () => files.remove('no')]) {
        await assertFailure(attempt(), 'file_not_found', String(attempt));
      }
      const { runtime: { files: port } } = stage;
      for (const path of ['relative', '', '/a/../b', '/nul\0', `/${'x/'.repeat(3000)}`, `/${'ä'.repeat(128)}`]) {
        await assertFailure(port.stat(sandbox.id, path, true, neverAborts), 'invalid_request', path);
        await assertFailure(port.write(sandbox.id, path, ReadableStream.from([]), {}, neverAborts), 'invalid_request', path);
      }
      await assertFailure(port.remove(sandbox.id, '/', true, neverAborts), 'invalid_request');
      const stranger = filesOf(stage, stage.launch('counts'));
      for (const attempt of [() => stranger.stat('x'), () => stranger.write('x', ''), () => stranger.list('.'), () => stranger.make('x')]) {
        await assertFailure(attempt(), 'sandbox_not_found', String(attempt));
      }
      assert.deepEqual(await files.names('dir'), ['file']);
    },
    'can share',
  ],
  ['never reads or writes a file outside the sandbox, for any path or link', walkHostilePaths],
];

const fuzzRuns = 60;

/** Tries paths from a seeded generator. */
async function walkHostilePaths(stage: SandboxRuntimeStage): Promise<void> {
  const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const outside = await mkdtemp(join(tmpdir(), 'skep-outside-'));
  try {
    const secret = randomUUID();
    await writeFile(join(outside, 'secret'), secret);
    const sandbox = await stage.begun('counts');
    const files = filesOf(stage, sandbox);
    const far = posix.join('../'.repeat(30), outside);
    const targets = [outside, far, `${outside}/secret`, `${far}/secret`, '/', '..', `dir/../${far}`];
    const links = targets.map((target, index) => link(`l${index}`, target));
    await stage.runtime.putFiles(sandbox.id, files.at('.'), tarOf([...links, [{ name: 'dir', type: 'directory' }]]), neverAborts);
    const parts = ['l0', 'l1', 'l2', 'l3', 'l4', 'l5', 'l6', 'dir', 'secret', '..', '.', '', ...outside.split('/'), '%2e%2e', '..\\', '\uFFFD'];
    const allowed = new Set(['file_not_found', 'wrong_file_type', 'invalid_request']);
    for (let run = 0; run < fuzzRuns; run += 1) {
      const path = `${files.at('.')}/${Array.from({ length: 1 + random(4) }, () => parts[random(parts.length)]).join('/')}`;
      const attempts = [() => files.text(path), () => files.write(path, 'overwritten'), () => files.names(path), () => files.move(path, files.at('taken'))];
      const outcome = await attempts[random(attempts.length)]?.().catch((error: unknown) => {
        assert.ok(isFailure(error) && allowed.has(error.code), `seed ${seed}: ${path}: ${String(error)}`);
      });
      assert.notEqual(outcome, secret, `seed ${seed}: ${path}`);
      assert.equal(await readFile(join(outside, 'secret'), 'utf8'), secret, `seed ${seed}: ${path}`);
    }
  } finally {
    await rm(outside, { recursive: true, force: true });
  }
}

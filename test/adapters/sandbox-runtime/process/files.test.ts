import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, lstat, mkdir, readFile, readdir, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { tarEnd, tarEntry } from '../../../../src/adapters/shared/packed-tar.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { readTar, tarOf, type TarItem } from '../../../contracts/sandbox-runtime-streams.ts';
import { requireNamesInBytes, requireNoWayThroughLinks } from '../names-in-bytes.ts';
import { createHost, type Host } from './host.ts';
import { launchOf, programs } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

let host: Host;
let runtime: SandboxRuntime;
let launch: SandboxLaunch;
let workspace: string;

async function start(command: readonly string[]): Promise<void> {
  launch = launchOf(command);
  workspace = join(host.root, launch.id, 'workspace');
  await runtime.start(launch, () => {}, neverAborts);
}

beforeEach(async () => {
  host = await createHost();
  runtime = host.open();
  await start(programs.counts);
});

afterEach(() => host.close());

const put = (items: Iterable<TarItem>, directory = '/workspace', signal = neverAborts): Promise<void> =>
  runtime.putFiles(launch.id, directory, tarOf(items), signal);
const isOfPipe = (error: unknown): boolean => isFailureOf(error, 'wrong_file_type') && error.context.fileType === 'other';
const isRefused = (error: unknown): boolean => isFailureOf(error, 'invalid_request');

test('An archive of the process runtime has names that are not UTF-8, but no way through links', async () => {
  await requireNamesInBytes(runtime, launch.id);
  await requireNoWayThroughLinks(runtime, launch.id);
});

describe('A path in the process runtime', () => {
  test("must be in the spec's working directory, or in the actual workspace folder", async () => {
    await put([[{ name: 'a' }, 'one']], '/workspace/below');
    await put([[{ name: 'b' }, 'two']], join(workspace, 'below'));
    const found = await readTar(await runtime.getFiles(launch.id, join(workspace, 'below'), neverAborts));
    assert.deepEqual([...found.keys()], ['below', 'below/a', 'below/b']);
    const own = ['launches', 'home'].map((name) => join(host.root, launch.id, name));
    for (const path of ['/etc', host.root, ...own, '/workspaces']) {
      await assert.rejects(put([[{ name: 'a' }, 'one']], path), isRefused, path);
      await assert.rejects(runtime.getFiles(launch.id, path, neverAborts), isRefused, path);
      await assert.rejects(runtime.files.stat(launch.id, path, true, neverAborts), isRefused, path);
    }
  });

  test('never follows a link out of the workspace', async () => {
    await mkdir(join(host.root, 'elsewhere'));
    await writeFile(join(host.root, 'elsewhere', 'secret'), 'secret');
    await symlink(join(host.root, 'elsewhere'), join(workspace, 'link'));
    await assert.rejects(put([[{ name: 'a' }, 'one']], '/workspace/link'), isRefused);
    await assert.rejects(put([[{ name: 'a' }, 'one']], '/workspace/link/below'), isRefused);
    await assert.rejects(runtime.getFiles(launch.id, '/workspace/link/secret', neverAborts), (error) => isFailureOf(error, 'file_not_found'));
    assert.deepEqual(await readdir(join(host.root, 'elsewhere')), ['secret']);
    const [entry] = (await readTar(await runtime.getFiles(launch.id, '/workspace/link', neverAborts))).values();
    assert.equal(entry?.header.type, 'symlink');
  });

  test('never follows a link out of the workspace if a name on the way is not UTF-8', async () => {
    await mkdir(join(host.root, 'elsewhere'));
    await writeFile(join(host.root, 'elsewhere', 'secret'), 'secret');
    const odd = Buffer.from('odd\xFF', 'latin1');
    await mkdir(Buffer.concat([Buffer.from(`${workspace}/`), odd]));
    await symlink(odd, join(workspace, 'link'));
    await symlink(join(host.root, 'elsewhere'), join(workspace, odd.toString()));
    const found = runtime.files.stat(launch.id, '/workspace/link/secret', true, neverAborts);
    await assert.rejects(found, (error) => isFailureOf(error, 'file_not_found'));
    await runtime.files.write(launch.id, '/workspace/link/own', ReadableStream.from([Buffer.from('own')]), {}, neverAborts);
    assert.equal((await runtime.files.stat(launch.id, '/workspace/link/own', true, neverAborts)).size, 3);
    assert.deepEqual(await readdir(join(host.root, 'elsewhere')), ['secret']);
  });

  test('never leads out of a workspace that is a link itself', async () => {
    await mkdir(join(host.root, 'elsewhere'));
    await rename(workspace, `${workspace}-before`);
    await symlink(join(host.root, 'elsewhere'), workspace);
    await assert.rejects(put([[{ name: 'a' }, 'one']]));
    await assert.rejects(runtime.getFiles(launch.id, '/workspace', neverAborts));
    await assert.rejects(runtime.files.makeDirectory(launch.id, '/workspace/a', neverAborts));
    assert.deepEqual(await readdir(join(host.root, 'elsewhere')), []);
  });
});

test('A pipe is not replaced by a write', async () => {
  const path = join(workspace, 'pipe');
  await once(spawn('mkfifo', [path]), 'close');
  await assert.rejects(runtime.files.write(launch.id, path, ReadableStream.from([]), {}, neverAborts), (error) =>
    isFailureOf(error, 'wrong_file_type') && error.context.fileType === 'other');
  assert.equal((await lstat(path)).isFIFO(), true);
});

describe('Unpacking an archive', () => {
  test('keeps the old file if the archive breaks off in the new one', async () => {
    await put([[{ name: 'kept' }, 'old']]);
    const cut = (await buffer(tarOf([[{ name: 'kept' }, Buffer.alloc(5_000)]]))).subarray(0, 2_000);
    await assert.rejects(runtime.putFiles(launch.id, '/workspace', ReadableStream.from([cut]), neverAborts), isRefused);
    assert.equal(await readFile(join(workspace, 'kept'), 'utf8'), 'old');
    assert.deepEqual((await readdir(workspace)).filter((name) => name.startsWith('.skep-')), []);
  });

  test('drops setuid bits, and replaces files in directories that are read-only for their owner', async () => {
    await put([
      [{ name: 'setuid', mode: 0o6755 }, '#!/bin/sh\n'],
      [{ name: 'closed', type: 'directory', mode: 0o500 }],
      [{ name: 'closed/file', mode: 0o400 }, 'first'],
    ]);
    assert.equal((await stat(join(workspace, 'setuid'))).mode & 0o7777, 0o755);
    assert.equal((await stat(join(workspace, 'closed'))).mode & 0o777, 0o500);
    await put([[{ name: 'closed', type: 'directory', mode: 0o500 }], [{ name: 'closed/file', mode: 0o400 }, 'second']]);
    assert.equal(await readFile(join(workspace, 'closed/file'), 'utf8'), 'second');
    await chmod(join(workspace, 'closed'), 0o700);
  });

  test('fails with sandbox_not_found if the sandbox is removed meanwhile', async () => {
    const underWay = Promise.withResolvers<void>();
    const over = new AbortController();
    const files = function* (): Generator<TarItem> {
      for (let n = 0; !over.signal.aborted; n += 1) {
        if (n === 50) underWay.resolve();
        yield [{ name: `${n}/file` }, 'x'];
      }
    };
    const refused = assert.rejects(put(files()), (error) => isFailureOf(error, 'sandbox_not_found'));
    try {
      await underWay.promise;
      await runtime.remove(launch.id);
      await refused;
    } finally {
      over.abort();
    }
    assert.deepEqual(await host.leftovers(launch.id), []);
  });
});

describe('Many or large files', () => {
  test('are streamed if one file has 512 MiB', async () => {
    const block = Buffer.alloc(2 ** 20, 'skep');
    const size = 512 * block.length;
    let given = 0;
    let ahead = 0;
    const blocks = async function* (): AsyncGenerator<Uint8Array> {
      for (; given < size; given += block.length) {
        // The first blocks may be asked for before the file is there.
        const temporary = (await readdir(workspace)).find((name) => name.startsWith('.skep-'));
        const file = temporary === undefined ? null : await stat(join(workspace, temporary));
        ahead = Math.max(ahead, given - (file?.size ?? 0));
        yield block;
      }
    };
    await runtime.putFiles(launch.id, '/workspace', bigFile('big', size, blocks()), neverAborts);
    assert.ok(ahead < 16 * block.length, String(ahead));
    let bytes = 0;
    for await (const chunk of await runtime.getFiles(launch.id, '/workspace/big', neverAborts)) bytes += chunk.byteLength;
    assert.equal(bytes, size + 512 + 1024);
  });

  test('are written and read back if there are 10,000', async () => {
    await put(Array.from({ length: 10_000 }, (_, n): TarItem => [{ name: `${n % 100}/${n}` }, `content ${n}`]));
    const found = await readTar(await runtime.getFiles(launch.id, '/workspace', neverAborts));
    assert.equal([...found.values()].filter(({ content }) => content.toString().startsWith('content ')).length, 10_000);
  });
});

test('A tree is refused if a path in it is too long for the system', async () => {
  const name = 'x'.repeat(250);
  const half = join(workspace, ...Array.from({ length: 9 }, () => name));
  await mkdir(half, { recursive: true });
  const script = 'cp -R "$0" second && mv second "$1/second"';
  const execution = await runtime.execute(launch.id, { command: [...shell(script), name, half] }, neverAborts);
  assert.equal(await execution.exited, 0);
  await assert.rejects(readTar(await runtime.getFiles(launch.id, '/workspace', neverAborts)), isRefused);
  const listed = (path: string, depth: number) => Readable.from(runtime.files.list(launch.id, path, depth, neverAborts)).toArray();
  await assert.rejects(listed('/workspace', 32), isRefused);
  assert.equal((await listed(`/workspace/${name}`, 10)).length, 10);
  // Without the last part, the path is short enough to be removed.
  await rename(join(half, 'second'), join(host.root, 'second'));
});

test('closing the runtime ends a running read with an error', async () => {
  await put([[{ name: 'big' }, Buffer.alloc(2 ** 22)]]);
  const reader = (await runtime.getFiles(launch.id, '/workspace', neverAborts)).getReader();
  assert.equal((await reader.read()).done, false);
  await runtime.close();
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  });
});

test('an archive of a directory leaves out FIFOs', async () => {
  const script = 'mkdir odd && mkfifo odd/pipe && echo text > odd/text';
  const execution = await runtime.execute(launch.id, { command: shell(script) }, neverAborts);
  assert.equal(await execution.exited, 0);
  assert.deepEqual([...(await readTar(await runtime.getFiles(launch.id, '/workspace/odd', neverAborts))).keys()], ['odd', 'odd/text']);
  assert.ok((await lstat(join(workspace, 'odd/pipe'))).isFIFO());
  await rm(join(workspace, 'odd'), { recursive: true });
});

test('a move replaces no FIFO', async () => {
  await put([[{ name: 'file' }, 'text']]);
  await promisify(execFile)('mkfifo', [join(workspace, 'pipe')]);
  await assert.rejects(runtime.files.move(launch.id, '/workspace/file', '/workspace/pipe', neverAborts), isOfPipe);
  assert.ok((await lstat(join(workspace, 'pipe'))).isFIFO());
});

test('names and targets that are not UTF-8 are in an archive as they are, and count for the size', async () => {
  const script = String.raw`d=$(printf 'odd/d\377') && mkdir -p "$d" && dd if=/dev/urandom of="$d/$(printf 'f\376')" bs=65536 count=1 &&
    sync "$d"/* && ln -s "$(printf 't\375')" odd/link`;
  const { diskBytes: before } = await runtime.usage(launch.id);
  const execution = await runtime.execute(launch.id, { command: shell(script) }, neverAborts);
  assert.equal(await execution.exited, 0);
  assert.ok(Number((await runtime.usage(launch.id)).diskBytes) - Number(before) >= 65_536);
  const unpacked = join(host.root, 'unpacked');
  await mkdir(unpacked);
  const tar = spawn('tar', ['x', '-C', unpacked], { stdio: ['pipe', 'inherit', 'inherit'] });
  await pipeline(await runtime.getFiles(launch.id, '/workspace/odd', neverAborts), tar.stdin);
  if (tar.exitCode === null) await once(tar, 'exit');
  const names = await readdir(join(unpacked, 'odd'), { recursive: true, encoding: 'latin1' });
  assert.deepEqual(names.toSorted(), ['d\u{FF}', 'd\u{FF}/f\u{FE}', 'link']);
  assert.deepEqual(await readlink(join(unpacked, 'odd/link'), 'latin1'), 't\u{FD}');
});

test('the size counts no files outside that links lead to, and is known if the home folder is such a link', async () => {
  const outside = join(host.root, '.outside');
  await mkdir(outside);
  await writeFile(join(outside, 'big'), Buffer.alloc(4 << 20, 1), { flush: true });
  const { diskBytes: before } = await runtime.usage(launch.id);
  const home = join(host.root, launch.id, 'home');
  await rm(home, { recursive: true });
  for (const link of [join(workspace, 'link'), home]) {
    await symlink(outside, link);
    assert.ok(Number((await runtime.usage(launch.id)).diskBytes) - Number(before) < 4 << 20, link);
  }
});

/** A tar of one file. */
function bigFile(name: string, size: number, content: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  return ReadableStream.from(
    (async function* (): AsyncGenerator<Uint8Array> {
      yield* tarEntry({ name, size }, content);
      yield tarEnd;
    })(),
  );
}

import { readdir, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { queryObjects } from 'node:v8';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { until } from '../../../support/until.ts';
import { commits, createScene, open, start, noProgress, type Scene, temporaryFolder } from './support.ts';

/** Returns the number of processes whose working directory is below the folder. */
async function processesIn(folder: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const folders = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
  return folders.filter((cwd) => cwd.startsWith(folder)).length;
}

async function temporaries({ root }: Scene): Promise<string[]> {
  const names = await readdir(join(root, 'tmp'));
  return (await Promise.all(names.map((name) => readdir(join(root, 'tmp', name))))).flat();
}

/** A host that stops responding as soon as git fetches. `begun` resolves then. */
async function stalled(): Promise<Scene & { readonly begun: Promise<void> }> {
  const scene = await createScene(commits(5));
  const begun = Promise.withResolvers<void>();
  scene.host.interceptor = ({ command }) => {
    if (command !== 'fetch') return false;
    begun.resolve();
    return true;
  };
  return { ...scene, begun: begun.promise };
}

const big = [{ id: 'only', at: start, files: [['zeros', '0'.repeat(8_000_000)] as const] }];

describe('The git processes', () => {
  test('are killed if the caller aborts the checkout, and leave no temporary files', async () => {
    const scene = await stalled();
    const mirror = scene.mirror();
    const leaving = new AbortController();
    const left = mirror.checkOut(scene.request, noProgress, leaving.signal);
    await scene.begun;
    // git, its HTTP helper, and the processes that they start.
    expect(await processesIn(scene.root)).toBeGreaterThanOrEqual(2);
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    await until(() => processesIn(scene.root), (count) => count === 0);
    await until(() => temporaries(scene), (names) => names.length === 0);
    scene.host.interceptor = null;
    expect(Object.keys((await open(mirror, scene.request)).files)).toHaveLength(5);
  });

  test('of a checkout in progress are killed when the mirror closes', async () => {
    const scene = await stalled();
    const mirror = scene.mirror();
    const ended = mirror.checkOut(scene.request, noProgress, neverAborts).then(() => null, (error: unknown) => error);
    await scene.begun;
    await mirror.close();
    expect(await ended).toMatchObject({ code: 'provider_failed' });
    // The processes that git started were killed with it, but nobody waits for them. They may need a moment to be gone.
    await until(() => processesIn(scene.root), (count) => count === 0);
    expect(await readdir(join(scene.root, 'tmp'))).toEqual([]);
  });

  test('of an archive are killed if the caller cancels it or aborts', async () => {
    const scene = await createScene(big);
    const mirror = scene.mirror();
    const leaving = new AbortController();
    for (const leave of [(reader: ReadableStreamDefaultReader) => reader.cancel(), async () => leaving.abort(new Error('left'))]) {
      const { archive } = await mirror.checkOut(scene.request, noProgress, leaving.signal);
      const reader = archive.getReader();
      let bytes = 0;
      // `.git` is small here, so git is already reading the files.
      while (bytes < 1_000_000) bytes += (await reader.read()).value?.length ?? 0;
      expect(await processesIn(scene.root)).toBeGreaterThanOrEqual(1);
      await leave(reader);
      await until(() => processesIn(scene.root), (count) => count === 0);
    }
  });

  test('of an archive are not killed after it was read to its end, because their pid may belong to another process', async () => {
    const scene = await createScene(commits(1));
    const { archive } = await scene.mirror().checkOut(scene.request, noProgress, neverAborts);
    const kill = vi.spyOn(process, 'kill');
    onTestFinished(() => kill.mockRestore());
    await new Response(archive).bytes();
    expect(kill).not.toHaveBeenCalled();
  });

  test('of an archive are killed if the caller cancels it while they print nothing', async () => {
    const scene = await createScene(commits(1));
    const gitBinary = join(await temporaryFolder(), 'git');
    await writeFile(gitBinary, '#!/bin/sh\ncase " $* " in *" archive "*) exec sleep 1000;; esac\nexec git "$@"\n', { mode: 0o755 });
    const { archive } = await scene.mirror({ gitBinary }).checkOut(scene.request, noProgress, neverAborts);
    const reader = archive.getReader();
    const read = (async () => {
      while (!(await reader.read()).done);
    })();
    await until(() => processesIn(scene.root), (count) => count === 1);
    await reader.cancel();
    await read;
    await until(() => processesIn(scene.root), (count) => count === 0);
  });
});

const streamsInMemory = (): number => queryObjects(TransformStream, { format: 'count' });

test('A mirror keeps nothing of a checkout that was read, cancelled or aborted', async () => {
  const scene = await createScene(commits(1));
  const mirror = scene.mirror();
  const checkOut = async (end: (archive: ReadableStream<Uint8Array>, leaving: AbortController) => Promise<unknown>): Promise<void> => {
    const leaving = new AbortController();
    const { archive } = await mirror.checkOut(scene.request, noProgress, leaving.signal);
    await end(archive, leaving);
  };
  const ends = [
    (archive: ReadableStream<Uint8Array>) => new Response(archive).bytes(),
    (archive: ReadableStream<Uint8Array>) => archive.cancel(),
    async (_: unknown, leaving: AbortController) => leaving.abort(),
  ];
  const before = streamsInMemory();
  for (const end of [...ends, ...ends]) await checkOut(end);
  await until(streamsInMemory, (count) => count <= before);
});

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Execution } from '../../../ports/sandbox-runtime.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../../ports/work-tree-snapshot.ts';
import { bareConfig } from '../../shared/git-process.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { raceSignal, realTimers, startTimeout } from '../../shared/timeout.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { createGitRunner, type GitRunner } from './git-runner.ts';
import type { MirrorStore } from './mirror-store.ts';
import { maxHeaderBytes, parseHeader, refusalOf, snapshotCommand, type SnapshotHeader } from './snapshot-script.ts';
import { commitAll, push } from './snapshot-push.ts';
import { demandWhole, listCommits, listFiles, patchOf, type SnapshotFolder } from './snapshot-diff.ts';

/** Takes snapshots, each into a bare repository of its own that is removed with it. */
export function createSnapshots(options: ResolvedOptions, open: () => Promise<MirrorStore>, closing: AbortSignal) {
  const { gitBinary, concurrency, snapshotTimeoutMs } = options;
  const git = createGitRunner(gitBinary, 'git');
  // Of their own: a sandbox that sends slowly must not hold up checkouts.
  const places = createSemaphore(concurrency);

  /** Bounds the time of work, and makes what else fails in it a refusal. */
  async function limited<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const slow = (): Error => new SnapshotRefusal({ code: 'not_done_in_time', withinMs: snapshotTimeoutMs });
    const limit = startTimeout(realTimers, snapshotTimeoutMs, slow, [signal, closing]);
    try {
      return await places.use(limit.signal, () => work(limit.signal));
    } finally {
      limit.end();
    }
  }

  async function takeSnapshot({ base, run }: SnapshotRequest, signal: AbortSignal): Promise<WorkTreeSnapshot> {
    const store = await raceSignal(open(), signal);
    const folder = store.temporary();
    const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
    try {
      const header = await limited(signal, async (signal) => {
        const execution = await run(snapshotCommand(base), signal);
        try {
          return await receive(git, folder, base, execution, options.maxSnapshotBytes, signal);
        } finally {
          // Nobody waits for a sandbox that does not answer.
          void execution.kill().catch(() => {});
        }
      });
      const snapshot = { git, folder, base, header };
      await limited(signal, (signal) => demandDescent(snapshot, signal));
      return {
        tree: header.tree,
        head: header.head,
        complete: header.complete,
        commits: (signal) => limited(signal, (signal) => listCommits(snapshot, signal)),
        files: (signal) => limited(signal, (signal) => listFiles(snapshot, signal)),
        patch: (paths, signal) => patchOf(snapshot, paths, AbortSignal.any([signal, closing])),
        commit: (request, signal) => limited(signal, (signal) => commitAll(snapshot, request, signal)),
        push: (request, signal) => limited(signal, (signal) => push(snapshot, request, options.answerMs, signal)),
        [Symbol.asyncDispose]: remove,
      };
    } catch (error) {
      await remove();
      throw error;
    }
  }

  return { takeSnapshot };
}

const maxStderrBytes = 4096;

/** Reads what the command writes into a new repository, and returns its line. */
async function receive(
  git: GitRunner, folder: string, base: string | null, execution: Execution, maxBytes: number, signal: AbortSignal,
): Promise<SnapshotHeader> {
  let stderr = '';
  const decoder = new TextDecoder();
  const said = (async () => {
    for await (const chunk of execution.stderr) if (stderr.length < maxStderrBytes) stderr += decoder.decode(chunk, { stream: true });
  })().catch(() => 'the exit code says how it ended');
  await execution.stdin.close().catch(() => 'it reads nothing');
  const reader = execution.stdout.getReader();
  const read = async (): Promise<Uint8Array | null> => (await raceSignal(reader.read(), signal)).value ?? null;
  let begin = Buffer.alloc(0);
  while (!begin.includes(10) && begin.length <= maxHeaderBytes) {
    const chunk = await read();
    if (chunk === null) break;
    begin = Buffer.concat([begin, chunk]);
  }
  const end = begin.indexOf(10);
  const demandExit = async (): Promise<void> => {
    const exitCode = await raceSignal(execution.exited, signal);
    await raceSignal(said, signal);
    const refusal = refusalOf(exitCode, stderr.slice(0, maxStderrBytes));
    if (refusal !== null) throw refusal;
  };
  if (end === -1 && begin.length <= maxHeaderBytes) await demandExit();
  const header = parseHeader(begin.toString('latin1', 0, Math.max(end, 0)), base);
  await makeRepository(folder, header);
  async function* pack(): AsyncGenerator<Uint8Array> {
    yield begin.subarray(end + 1);
    for (let chunk = await read(); chunk !== null; chunk = await read()) yield chunk;
  }
  // Every object is named by its content, so none can take the place of another. The links are not checked, since the base is not whole.
  // Nothing is to outlast the machine, so nothing is synced.
  const args = ['-c', 'core.fsync=none', 'index-pack', '--stdin', '--fsck-objects', `--max-input-size=${maxBytes}`];
  const exit = await git.run({ args, folder, environment: { GIT_DIR: folder }, input: pack() }, signal);
  if (/exceeds maximum allowed size/u.test(exit.stderr)) {
    throw new SnapshotRefusal({ code: 'too_large', limit: `${maxBytes} bytes that differ` });
  }
  demandWhole(exit);
  await demandExit();
  return header;
}

/** Makes a bare repository in which the history ends at the boundary. */
async function makeRepository(folder: string, { tree, boundary }: SnapshotHeader): Promise<void> {
  await mkdir(join(folder, 'objects'), { recursive: true, mode: 0o700 });
  await mkdir(join(folder, 'refs'));
  await writeFile(join(folder, 'HEAD'), 'ref: refs/heads/none\n');
  await writeFile(join(folder, 'config'), bareConfig(tree));
  if (boundary.length > 0) await writeFile(join(folder, 'shallow'), boundary.map((oid) => `${oid}\n`).join(''));
}

/** Throws a refusal unless the last commit descends from the base. A false boundary only takes parents away, so it can't feign that. */
async function demandDescent({ git, folder, base, header: { head } }: SnapshotFolder, signal: AbortSignal): Promise<void> {
  if (base === null || head === null || head === base) return;
  const args = ['merge-base', '--is-ancestor', base, head];
  const exit = await git.run({ args, folder, environment: { GIT_DIR: folder } }, signal);
  if (exit.code === 1) throw new SnapshotRefusal({ code: 'history_rewritten' });
  demandWhole(exit);
}

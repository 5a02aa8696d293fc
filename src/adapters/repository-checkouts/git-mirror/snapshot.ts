import { rm } from 'node:fs/promises';
import type { ChangeList } from '../../../domain/change.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../../ports/work-tree-snapshot.ts';
import { type GitRunner, makeGitFolder } from '../../shared/git-process.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { raceSignal, realTimers, startTimeout, type Timeout } from '../../shared/timeout.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import type { MirrorStore } from './mirror-store.ts';
import { createMirrorGit } from './mirror-git.ts';
import { collectEntries, parseChangeList } from './change-list.ts';
import { type CommandOutput, readCommand } from './command-output.ts';
import { listCommand, maxHeaderBytes, parseHeader, snapshotCommand, type SnapshotHeader } from './snapshot-script.ts';
import { commitAll, push } from './snapshot-push.ts';
import { requireIntact, listCommits, listFiles, patchOf, type SnapshotFolder } from './snapshot-diff.ts';

/** Runs git in sandboxes. Each snapshot has its own bare repository, which is removed with it. */
export function createSnapshots(options: ResolvedOptions, open: () => Promise<MirrorStore>, closing: AbortSignal) {
  const { gitBinary, concurrency, snapshotTimeoutMs } = options;
  const git = createMirrorGit(gitBinary, 'git');
  // A separate semaphore, because a slow sandbox must not block checkouts.
  const semaphore = createSemaphore(concurrency);

  function startLimit(...signals: AbortSignal[]): Timeout {
    const slow = (): Error => new SnapshotRefusal({ code: 'not_done_in_time', withinMs: snapshotTimeoutMs });
    return startTimeout(realTimers, snapshotTimeoutMs, slow, [...signals, closing]);
  }

  async function withTimeLimit<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const limit = startLimit(signal);
    try {
      return await semaphore.use(limit.signal, () => work(limit.signal));
    } finally {
      limit.end();
    }
  }

  return {
    async takeSnapshot({ base, run }: SnapshotRequest, signal: AbortSignal): Promise<WorkTreeSnapshot> {
      const store = await raceSignal(open(), signal);
      const folder = store.temporary();
      const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
      try {
        const snapshot = await withTimeLimit(signal, async (signal) => {
          const read = (output: CommandOutput) => receiveSnapshot(git, folder, base, output, options.maxSnapshotBytes, signal);
          const header = await readCommand(await run(snapshotCommand(base), signal), signal, startLimit, read);
          await requireDescendant({ git, folder, base, header }, signal);
          return { git, folder, base, header };
        });
        const { tree, head, complete } = snapshot.header;
        return {
          tree,
          head,
          complete,
          commits: (signal) => withTimeLimit(signal, (signal) => listCommits(snapshot, signal)),
          files: (signal) => withTimeLimit(signal, (signal) => listFiles(snapshot, signal)),
          patch: (paths, signal) => patchOf(snapshot, paths, AbortSignal.any([signal, closing])),
          commit: (request, signal) => withTimeLimit(signal, (signal) => commitAll(snapshot, request, signal)),
          push: (request, signal) => withTimeLimit(signal, (signal) => push(snapshot, request, options.answerMs, signal)),
          [Symbol.asyncDispose]: remove,
        };
      } catch (error) {
        await remove();
        throw error;
      }
    },
    listChanges: ({ base, run }: SnapshotRequest, signal: AbortSignal): Promise<ChangeList> =>
      withTimeLimit(signal, async (signal) =>
        readCommand(await run(listCommand(base), signal), signal, startLimit, (output) => receiveList(base, output))),
  };
}

const maxListBytes = 64 * 2 ** 20;

async function receiveList(base: string | null, output: CommandOutput): Promise<ChangeList> {
  const { entries, take } = collectEntries();
  for (let bytes = 0, chunk = await output.read(); chunk !== null; chunk = await output.read()) {
    if ((bytes += chunk.length) > maxListBytes) throw new SnapshotRefusal({ code: 'too_large', limit: `${maxListBytes} bytes of a list` });
    take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  }
  await output.requireSuccess();
  return parseChangeList(base, entries);
}

/** Reads the header and the pack into a new repository, and returns the header. A complete pack proves that the command succeeded. */
async function receiveSnapshot(
  git: GitRunner, folder: string, base: string | null, output: CommandOutput, maxBytes: number, signal: AbortSignal,
): Promise<SnapshotHeader> {
  let begin = Buffer.alloc(0);
  while (!begin.includes(10) && begin.length <= maxHeaderBytes) {
    const chunk = await output.read();
    if (chunk === null) break;
    begin = Buffer.concat([begin, chunk]);
  }
  const end = begin.indexOf(10);
  if (end === -1 && begin.length <= maxHeaderBytes) await output.requireSuccess();
  const header = parseHeader(begin.toString('latin1', 0, Math.max(end, 0)), base);
  await makeGitFolder(folder, header.tree, { shallow: header.boundary.map((oid) => `${oid}\n`).join('') });
  async function* pack(): AsyncGenerator<Uint8Array> {
    yield begin.subarray(end + 1);
    for (let chunk = await output.read(); chunk !== null; chunk = await output.read()) yield chunk;
  }
  // Object names are content hashes, so no object can replace another. Links are not checked, because the base is incomplete. Nothing is
  // synced, because the snapshot need not survive a crash of the machine.
  const args = ['-c', 'core.fsync=none', 'index-pack', '--stdin', '--fsck-objects', `--max-input-size=${maxBytes}`];
  const exit = await git.run({ args, folder, input: pack() }, signal);
  output.cancel();
  if (/exceeds maximum allowed size/u.test(exit.stderr)) {
    throw new SnapshotRefusal({ code: 'too_large', limit: `${maxBytes} bytes that differ` });
  }
  requireIntact(exit);
  return header;
}

/** Throws a refusal unless the last commit descends from the base. A wrong boundary only removes parents, so it can't fake that. */
async function requireDescendant({ git, folder, base, header: { head } }: SnapshotFolder, signal: AbortSignal): Promise<void> {
  if (base === null || head === null || head === base) return;
  const args = ['merge-base', '--is-ancestor', base, head];
  const exit = await git.run({ args, folder }, signal);
  if (exit.code === 1) throw new SnapshotRefusal({ code: 'history_rewritten' });
  requireIntact(exit);
}

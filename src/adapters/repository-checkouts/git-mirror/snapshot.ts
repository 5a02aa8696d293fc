import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChangeList } from '../../../domain/change.ts';
import { maskUrlPasswords } from '../../../domain/credentials.ts';
import { outputTail } from '../../../domain/output-tail.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { Execution } from '../../../ports/sandbox-runtime.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../../ports/work-tree-snapshot.ts';
import { makeGitFolder } from '../../shared/git-process.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { realTimers, startTimeout } from '../../shared/timeout.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import type { MirrorStore } from './mirror-store.ts';
import { createMirrorGit, oldMistakes } from './mirror-git.ts';
import { collectEntries, parseChangeList } from './change-list.ts';
import { listCommand, maxHeaderBytes, parseHeader, refusalOf, snapshotCommand, type SnapshotHeader } from './snapshot-script.ts';
import { commitAll, listCommits, listFiles, patchOf, pathOfObject, push, requireIntact, type SnapshotFolder } from './snapshot-folder.ts';

/** Runs git in sandboxes. Each snapshot has its own bare repository, which is removed with it. */
export function createSnapshots(options: ResolvedOptions, open: () => Promise<MirrorStore>, closing: AbortSignal) {
  const { gitBinary, concurrency, snapshotTimeoutMs, maxSnapshotBytes } = options;
  // A small pack of a hostile sandbox can contain a huge object.
  const git = createMirrorGit(gitBinary, 'git', '512m');
  // Limits git on this machine. A command in a sandbox does not count, because a slow sandbox must not block the others.
  const semaphore = createSemaphore(concurrency);

  async function withTimeLimit<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const slow = (): Error => new SnapshotRefusal({ code: 'not_done_in_time', withinMs: snapshotTimeoutMs });
    using limit = startTimeout(realTimers, snapshotTimeoutMs, slow, [signal, closing]);
    return await work(limit.signal);
  }

  const onHost = <T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    withTimeLimit(signal, (signal) => semaphore.use(signal, () => work(signal)));

  return {
    async takeSnapshot(request: SnapshotRequest, signal: AbortSignal): Promise<WorkTreeSnapshot> {
      const { base, run } = request;
      const store = await raceSignal(open(), signal);
      const folder = store.temporary();
      const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
      try {
        const snapshot = await withTimeLimit(signal, async (signal) => {
          const limit = { bytes: maxSnapshotBytes, of: 'that differ' };
          const execution = await run(snapshotCommand(request), signal);
          const header = await readCommand(execution, limit, signal, (output) => receiveSnapshot(folder, base, output));
          const received = { git, folder, base, header };
          await semaphore.use(signal, () => indexPack(received, signal));
          return received;
        });
        const { tree, head, complete } = snapshot.header;
        return {
          tree,
          head,
          complete,
          commits: (signal) => onHost(signal, (signal) => listCommits(snapshot, signal)),
          files: (signal) => onHost(signal, (signal) => listFiles(snapshot, signal)),
          patch: (paths, signal) => patchOf(snapshot, paths, AbortSignal.any([signal, closing])),
          commit: (request, signal) => onHost(signal, (signal) => commitAll(snapshot, request, signal)),
          push: (request, signal) => onHost(signal, (signal) => push(snapshot, request, options, signal)),
          [Symbol.asyncDispose]: remove,
        };
      } catch (error) {
        await remove();
        throw error;
      }
    },
    listChanges: (request: SnapshotRequest, signal: AbortSignal): Promise<ChangeList> =>
      withTimeLimit(signal, async (signal) => {
        const execution = await request.run(listCommand(request), signal);
        return await readCommand(execution, listLimit, signal, (output) => receiveList(request.base, output));
      }),
  };
}

const listLimit = { bytes: 64 * 2 ** 20, of: 'of a list' };

async function receiveList(base: string | null, output: AsyncIterable<Uint8Array>): Promise<ChangeList> {
  const { entries, take } = collectEntries();
  for await (const chunk of output) take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  return parseChangeList(base, entries);
}

const packFile = 'objects/pack/received.pack';

/** Reads the header and the pack into a new repository, and returns the header. */
async function receiveSnapshot(folder: string, base: string | null, output: AsyncGenerator<Uint8Array>): Promise<SnapshotHeader> {
  let begin = Buffer.alloc(0);
  while (!begin.includes(10) && begin.length <= maxHeaderBytes) {
    const { done, value } = await output.next();
    if (done === true) break;
    begin = Buffer.concat([begin, value]);
  }
  const end = begin.indexOf(10);
  const header = parseHeader(begin.toString('latin1', 0, Math.max(end, 0)), base);
  async function* pack(): AsyncGenerator<Uint8Array> {
    yield begin.subarray(end + 1);
    yield* output;
  }
  try {
    await makeGitFolder(folder, header.tree, { shallow: header.boundary.map((oid) => `${oid}\n`).join('') });
    await mkdir(join(folder, 'objects/pack'));
    await writeFile(join(folder, packFile), pack());
  } catch (error) {
    const isFull = ['ENOSPC', 'EDQUOT'].includes(errorCode(error) ?? '');
    throw isFull ? new SnapshotRefusal({ code: 'disk_full' }, { cause: error }) : error;
  }
  return header;
}

// The base can have old mistakes, which index-pack can't ignore before git 2.44. Without refs, fsck needs no complete base.
const ignored = [...oldMistakes, 'gitmodulesMissing'].flatMap((mistake) => ['-c', `fsck.${mistake}=ignore`]);
const checkArgs = [...ignored, 'fsck', '--strict', '--no-dangling', '--no-progress'];

/** Throws a refusal if the pack is damaged. */
async function indexPack(snapshot: SnapshotFolder, signal: AbortSignal): Promise<void> {
  const { git, folder } = snapshot;
  // Object names are content hashes, so no object can replace another. Nothing is synced, because the snapshot need not survive a crash of
  // the machine.
  requireIntact(await git.run({ args: ['-c', 'core.fsync=none', 'index-pack', join(folder, packFile)], folder }, signal));
  await checkObjects(snapshot, signal);
}

const refusedObject = /^error in \w+ (?<object>[0-9a-f]+): (?<check>\w+): (?<message>.*)$/mu;

/** Throws a refusal that names the object if git's check refuses one. */
async function checkObjects(snapshot: SnapshotFolder, signal: AbortSignal): Promise<void> {
  const { git, folder } = snapshot;
  const exit = await git.run({ args: checkArgs, folder }, signal);
  // The message may quote a URL of .gitmodules.
  const stderr = maskUrlPasswords(exit.stderr);
  const { object, check = '', message = '' } = exit.code === 0 ? {} : (refusedObject.exec(stderr)?.groups ?? {});
  if (object === undefined) return requireIntact(exit);
  const path = await pathOfObject(snapshot, object, signal);
  const reason = { code: 'object_refused', check, message: outputTail(Buffer.from(message, 'latin1'), 300), object, path } as const;
  throw new SnapshotRefusal(reason, { cause: new Error(stderr) });
}

interface OutputLimit {
  readonly bytes: number;
  /** What the bytes are, for the refusal. */
  readonly of: string;
}

/** Reads the output of a command in a sandbox to its end. Kills the command, without waiting for its end, if the read fails. */
async function readCommand<T>(
  execution: Execution, limit: OutputLimit, signal: AbortSignal, read: (output: AsyncGenerator<Uint8Array>) => Promise<T>,
): Promise<T> {
  try {
    return await read(outputOf(execution, limit, signal));
  } catch (error) {
    void execution.kill().catch(() => {});
    throw error;
  }
}

/** Ends when the command has succeeded. Throws a refusal if it fails, or writes too much. */
async function* outputOf(execution: Execution, limit: OutputLimit, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const stderr = readStderr(execution.stderr);
  execution.stdin.close().catch(() => 'it reads nothing');
  const reader = execution.stdout.getReader();
  let bytes = 0;
  for (;;) {
    const { value: chunk } = await raceSignal(reader.read(), signal);
    if (chunk === undefined) break;
    bytes += chunk.length;
    if (bytes > limit.bytes) throw new SnapshotRefusal({ code: 'too_large', limit: `${limit.bytes} bytes ${limit.of}` });
    yield chunk;
  }
  const refusal = refusalOf(await raceSignal(execution.exited, signal), await raceSignal(stderr, signal));
  if (refusal !== null) throw refusal;
}

const maxOutputBytes = 2048;

/** Returns the end of the standard error. Nothing if it can't be read. */
async function readStderr(stream: ReadableStream<Uint8Array>): Promise<string> {
  let end = Buffer.alloc(0);
  try {
    // One character more, so that the end does not begin inside a character.
    for await (const chunk of stream) end = Buffer.concat([end, chunk]).subarray(-(maxOutputBytes + 4));
  } catch {
    // The exit code says how it ended.
  }
  return maskUrlPasswords(outputTail(end, maxOutputBytes));
}

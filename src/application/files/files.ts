import type { FileEntry } from '../../domain/file-entry.ts';
import { type Page, pageOf } from '../../domain/page.ts';
import { activityIntervalMs } from '../../domain/idle-policy.ts';
import type { Caller } from '../../domain/principal.ts';
import type { ByteRange, SandboxFiles } from '../../ports/sandbox-files.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { CoreDeps, Bound } from '../use-cases.ts';
import { getSandbox, withRecordFailures } from '../sandboxes/sandbox-records.ts';
import { interval } from '../timers.ts';

/** The work of a use case on the runtime. `instanceId` is the id of the sandbox there. */
type FileWork<A extends readonly unknown[], R> = (runtime: SandboxRuntime, instanceId: string, ...args: A) => Promise<R>;

type FileUseCase<A extends readonly unknown[], R> = (deps: CoreDeps, caller: Caller | null, sandboxId: string, ...args: A) => Promise<R>;

/** Returns a use case that does not count as activity. */
function readingUseCase<A extends readonly unknown[], R>(work: FileWork<A, R>): FileUseCase<A, R> {
  return async ({ store, runtime }, caller, sandboxId, ...args) => {
    const sandbox = await getSandbox(store, caller, sandboxId);
    return await withRecordFailures(sandbox, () => work(runtime, sandbox.instanceId, ...args));
  };
}

/** Returns a use case that counts as activity until it is done. */
function changingUseCase<A extends readonly unknown[], R>(work: FileWork<A, R>): FileUseCase<A, R> {
  return async ({ store, runtime, clock }, caller, sandboxId, ...args) => {
    const sandbox = await getSandbox(store, caller, sandboxId);
    const touch = async (): Promise<void> => await store.sandboxes.touch(sandbox.id, clock.now());
    await touch();
    // If the store fails now, the next interval tries again.
    using _ = interval(clock, activityIntervalMs(sandbox), () => void touch().catch(() => {}));
    return await withRecordFailures(sandbox, () => work(runtime, sandbox.instanceId, ...args));
  };
}

export interface DirectoryRequest {
  /** 1: only the entries of the directory; 2: also the entries of its subdirectories; and so on. */
  readonly depth: number;
  /** The path of the last entry of the previous page. Null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

/** Returns a page of entries of a directory, ordered by path. Each page reads the directory anew. */
async function listDirectory(
  { files }: SandboxRuntime, instanceId: string, path: string, { depth, after, limit }: DirectoryRequest, signal: AbortSignal,
): Promise<Page<FileEntry>> {
  const wanted = limit + 1;
  let first: FileEntry[] = [];
  for await (const entry of files.list(instanceId, path, depth, signal)) {
    if (after !== null && entry.path <= after) continue;
    first.push(entry);
    // Keeps only a few pages in memory, however large the directory is.
    if (first.length >= wanted * 4) first = firstOf(first, wanted);
  }
  return pageOf(firstOf(first, wanted), limit, (entry) => ({ value: 0, id: entry.path }));
}

function firstOf(entries: readonly FileEntry[], count: number): FileEntry[] {
  return entries.toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path))).slice(0, count);
}

export function wholeFile({ size }: FileEntry): ByteRange {
  return { offset: 0, length: size };
}

type ArgsOf<M extends 'stat' | 'read' | 'write' | 'remove' | 'move' | 'makeDirectory'> = Parameters<SandboxFiles[M]>;

export const fileUseCases = {
  stat: readingUseCase(({ files }, ...args: ArgsOf<'stat'>) => files.stat(...args)),
  read: readingUseCase(({ files }, ...args: ArgsOf<'read'>) => files.read(...args)),
  write: changingUseCase(({ files }, ...args: ArgsOf<'write'>) => files.write(...args)),
  remove: changingUseCase(({ files }, ...args: ArgsOf<'remove'>) => files.remove(...args)),
  /** Returns the moved entry. Only E2B's clients can move a file. */
  move: changingUseCase(async ({ files }, ...[instanceId, from, to, signal]: ArgsOf<'move'>) => {
    await files.move(instanceId, from, to, signal);
    return await files.stat(instanceId, to, false, signal);
  }),
  list: readingUseCase(listDirectory),
  /** `isNew` is false if the directory already existed. */
  makeDirectory: changingUseCase(async ({ files }, ...[instanceId, path, signal]: ArgsOf<'makeDirectory'>) => {
    const isNew = await files.makeDirectory(instanceId, path, signal);
    return { directory: await files.stat(instanceId, path, true, signal), isNew };
  }),
  readArchive: readingUseCase((runtime, ...args: Parameters<SandboxRuntime['getFiles']>) => runtime.getFiles(...args)),
  writeArchive: changingUseCase((runtime, ...args: Parameters<SandboxRuntime['putFiles']>) => runtime.putFiles(...args)),
};

/**
 * The use cases of files in sandboxes: the methods of {@link SandboxFiles}, and `getFiles` and `putFiles` of {@link SandboxRuntime}, with
 * their failures. Sandboxes outside the scope of the caller are not found. They do not wake the sandbox. If it is paused and its runtime
 * cannot reach the files then, they throw `sandbox_not_running`.
 */
export type Files = Bound<typeof fileUseCases>;

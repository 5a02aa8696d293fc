import { rename, rm, stat } from 'node:fs/promises';
import { isFailure, isFailureOf } from '../../../domain/failure.ts';
import { onAbort, raceSignal } from '../../../ports/abort-signals.ts';
import type {
  Checkout, CheckoutProgress, CheckoutRequest, RepositoryCheckouts, WorkTreeRequest,
} from '../../../ports/repository-checkouts.ts';
import { type GitRunner, splitAtNul } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { realTimers, startTimeout } from '../../shared/timeout.ts';
import { fetchBranch } from './fetch-branch.ts';
import { Corruption, requireSuccess, RefNotFound } from './git-failures.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { createMirrorGit } from './mirror-git.ts';
import { maxRepositoryBytes, type MirrorLease, type MirrorStore, sizeOf } from './mirror-store.ts';
import { commitAt, exportOf, makeExport, makeMirror, type Mirror, refOf, removeLeftovers } from './mirror-folder.ts';
import { askTip, type BranchTip } from './branch-tip.ts';
import { archiveParts } from './work-tree-archive.ts';

export interface CheckoutJob {
  readonly git: GitRunner;
  readonly store: MirrorStore;
  readonly options: ResolvedOptions;
  readonly lease: MirrorLease;
  readonly request: WorkTreeRequest;
  readonly progress: CheckoutProgress;
}

export function createCheckout(
  options: ResolvedOptions,
  open: () => Promise<MirrorStore>,
  closing: AbortSignal,
): Pick<RepositoryCheckouts, 'checkOut' | 'checkBranch' | 'findBranch'> {
  const { timeoutMs, gitBinary } = options;

  async function withTimeLimit<T>(
    { provider }: CheckoutRequest,
    signal: AbortSignal,
    work: (store: MirrorStore, git: GitRunner, within: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { failed, timedOut } = providerFailures(provider);
    using limit = startTimeout(realTimers, timeoutMs, () => timedOut(timeoutMs), [signal, closing]);
    try {
      return await work(await raceSignal(open(), limit.signal), createMirrorGit(gitBinary, provider), limit.signal);
    } catch (error) {
      signal.throwIfAborted();
      closing.throwIfAborted();
      if (isFailure(error)) throw error;
      throw failed('no work tree could be made of the repository', error);
    }
  }

  return {
    checkOut: (request, progress, signal) =>
      withTimeLimit(request, signal, async (store, git, within) => {
        const lease = store.acquire(request.provider, request.repository);
        const job = { git, store, options, lease, request, progress };
        try {
          const tip = await raceSignal(ensureTip(job, within), within);
          // In the same tick, because an export without a lease is removed when the next checkout of the mirror ends.
          lease.exported = tip === null ? null : exportOf(lease.mirror, tip.oid);
          return checkoutOf(job, tip, AbortSignal.any([signal, closing]));
        } catch (error) {
          lease.release();
          throw error;
        }
      }),
    findBranch: (request, signal) =>
      withTimeLimit(request, signal, async (_, git, within) => {
        try {
          const tip = await askTip(git, request, options, within);
          return { commit: tip?.oid ?? null, isDefault: tip?.isDefault ?? false };
        } catch (error) {
          if (isFailureOf(error, 'branch_not_found', 'repository_empty')) return { commit: null, isDefault: false };
          throw error;
        }
      }),
    checkBranch: (request, signal) =>
      withTimeLimit(request, signal, async (_, git, within) => void (await askTip(git, request, options, within))),
  };
}

/** Returns the checkout while git makes its archive. Keeps the lease until the archive was read, is cancelled or fails. */
function checkoutOf({ git, store, lease, request }: CheckoutJob, tip: BranchTip | null, signal: AbortSignal): Checkout {
  const { failed } = providerFailures(request.provider);
  const held = new DisposableStack();
  held.defer(lease.release);
  const ending = new AbortController();
  async function* parts(): AsyncGenerator<Uint8Array> {
    try {
      yield* archiveParts(git, tip, request, lease.exported, ending.signal);
    } catch (error) {
      // The next checkout exports the commit from the mirror again.
      if (lease.exported !== null && !ending.signal.aborted) await store.discard(lease.exported);
      throw isFailure(error) ? error : failed('the local copy of the repository could not be read', error);
    }
  }
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({
    // The signal ends the archive here, because a pipe that gets a signal first waits until its last part is read.
    start: (controller) => void held.use(onAbort(signal, () => {
      ending.abort(signal.reason);
      controller.error(signal.reason);
    })),
    // Ends git also while it prints nothing. The pipe only ends it when its next part comes.
    cancel: (reason) => ending.abort(reason),
  });
  // The pipe releases the lease also if nobody reads. A stream that pulls from `parts` would not begin before the first read.
  void ReadableStream.from(parts()).pipeTo(writable).catch(() => 'the reader has the failure').finally(() => held.dispose());
  return { branch: tip?.branch ?? null, commit: tip?.oid ?? null, archive: readable };
}

/** Asks the host for the branch's commit, and exports that commit or a newer one. Null if the repository is empty. */
async function ensureTip(job: CheckoutJob, signal: AbortSignal): Promise<BranchTip | null> {
  const { git, store, options, lease, request } = job;
  const tip = await askTip(git, request, options, signal);
  if (tip === null) return null;
  const key = JSON.stringify([lease.mirror.id, tip.branch, tip.oid]);
  try {
    const oid = await store.fetches.join(key, signal, (unwanted) =>
      store.mutex.runExclusive(lease.mirror.id, () => ensureCommit(job, tip, unwanted), unwanted),
    );
    return { ...tip, oid };
  } catch (error) {
    if (!(error instanceof RefNotFound)) throw error;
    // Only the host can say whether the branch was deleted meanwhile.
    if ((await askTip(git, request, options, signal)) === null) return null;
    throw providerFailures(request.provider).failed('it lists the branch, but could not send it; try again', error);
  }
}

/** Returns the commit, or a newer one of the branch. Needs exclusive use of the mirror, because a corrupt one is made again. */
async function ensureCommit(job: CheckoutJob, tip: BranchTip, signal: AbortSignal): Promise<string> {
  try {
    return await fetchAndExport(job, tip, signal);
  } catch (error) {
    if (!(error instanceof Corruption)) throw error;
    job.progress({ code: 'fetching_repository_again' });
    await job.store.discard(job.lease.mirror.gitDir);
    return await fetchAndExport(job, tip, signal).catch((again: unknown) => {
      throw again instanceof Corruption ? new Corruption(again.message, { cause: error }) : again;
    });
  }
}

async function fetchAndExport(job: CheckoutJob, tip: BranchTip, signal: AbortSignal): Promise<string> {
  const { git, store, options, progress } = job;
  const { mirror } = job.lease;
  await makeMirror(mirror, tip.oid, store.temporary());
  let oid = tip.oid;
  if ((await commitAt(mirror, refOf(tip.branch))) !== oid) {
    await removeLeftovers(mirror);
    progress({ code: 'fetching_repository', phase: null, percent: null });
    try {
      oid = await store.work.use(signal, () => fetchBranch(job, tip, signal));
    } catch (error) {
      await removeLeftovers(mirror);
      if ((await sizeOf(mirror.gitDir)) > maxRepositoryBytes(options)) await store.discard(mirror.gitDir);
      throw error;
    }
  }
  const folder = exportOf(mirror, oid);
  const exists = await stat(folder).then(() => true, () => false);
  if (exists) return oid;
  await store.work.use(signal, () => refuseLargeWorkTree(git, mirror, oid, options, signal));
  const temporary = store.temporary();
  try {
    await store.work.use(signal, () => makeExport(git, mirror, oid, temporary, signal));
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return oid;
}

const maxDepth = 200;

/**
 * Throws `provider_failed` if a commit's work tree has too many files or bytes, or is too deep. A small repository can have a huge work
 * tree, because it can contain the same folders and files many times. The list is read while git writes it, and git is ended at the first
 * entry beyond a limit.
 */
async function refuseLargeWorkTree(
  git: GitRunner,
  { gitDir }: Mirror,
  oid: string,
  { maxFiles, maxWorkTreeBytes }: Pick<ResolvedOptions, 'maxFiles' | 'maxWorkTreeBytes'>,
  signal: AbortSignal,
): Promise<void> {
  const { tooLarge } = providerFailures(git.provider);
  let [files, bytes] = [0, 0];
  // Lines `MODE TYPE OID SIZE<tab>PATH`. A folder has no size.
  const count = splitAtNul((entry) => {
    const path = entry.slice(entry.indexOf('\t') + 1);
    files += 1;
    bytes += Number.parseInt(entry.slice(0, entry.indexOf('\t')).split(' ').at(-1) ?? '', 10) || 0;
    if (files > maxFiles) throw tooLarge(`${maxFiles} files and folders in a work tree`);
    if (bytes > maxWorkTreeBytes) throw tooLarge(`${maxWorkTreeBytes} bytes in a work tree`);
    if (path.split('/').length > maxDepth) throw tooLarge(`${maxDepth} levels of folders in a work tree`);
  }, tooLarge);
  const args = ['ls-tree', '-r', '-t', '-l', '-z', '--full-tree', oid];
  requireSuccess(await git.run({ args, folder: gitDir }, signal, count), git.provider);
}

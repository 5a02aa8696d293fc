import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import type { Checkout, CheckoutProgress, CheckoutRequest, RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { raceSignal, realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { streamOf } from './archive-stream.ts';
import { type Hold, makeExport } from './commit-export.ts';
import { fetchHead, largestRepository } from './fetch-branch.ts';
import { Damage, RefGone } from './git-failures.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { createGit, type Git } from './git-runner.ts';
import { type Lease, sizeOf, type Workshop } from './mirror-store.ts';
import { commitAt, makeMirror, type Mirror, refOf, removeLeftovers } from './mirror.ts';
import { askHead, type Head } from './remote-head.ts';
import { archiveParts } from './work-tree-archive.ts';

/** Where what is handed out is. */
interface Ready {
  readonly head: Head;
  readonly folder: string;
}

export function createCheckout(options: ResolvedOptions, open: () => Promise<Workshop>, closing: AbortSignal): RepositoryCheckouts['checkOut'] {
  const { timeoutMs, gitBinary } = options;

  async function prepare(
    git: Git,
    workshop: Workshop,
    { mirror, turns }: Lease,
    request: CheckoutRequest,
    progress: CheckoutProgress,
    signal: AbortSignal,
  ): Promise<Ready | null> {
    const head = await askHead(git, request, options, signal);
    if (head === null) return null;
    const key = JSON.stringify([mirror.id, head.branch, head.oid]);
    const bringing = { git, workshop, options, mirror, request, head, progress };
    try {
      const oid = await workshop.fetches.join(key, signal, (nobodyLeft) => turns.use(nobodyLeft, () => bring(bringing, nobodyLeft)));
      return { head: { ...head, oid }, folder: exportOf(mirror, oid) };
    } catch (error) {
      if (!(error instanceof RefGone)) throw error;
      // Whether the branch was deleted meanwhile, only the host can say.
      if ((await askHead(git, request, options, signal)) === null) return null;
      throw providerFailures(request.provider).failed('it does not give out the branch that it lists; try again', error);
    }
  }

  return async (request, progress, signal) => {
    const { provider } = request;
    const { failed, timedOut } = providerFailures(provider);
    const git = createGit(gitBinary, provider);
    const limit = startTimeout(realTimers, timeoutMs, () => timedOut(timeoutMs), [signal, closing]);
    let lease: Lease | null = null;
    try {
      const workshop = await raceSignal(open(), limit.signal);
      const taken = workshop.leases.take(provider, request.repository);
      lease = taken;
      const ready = await withTimeout(limit, (within) => prepare(git, workshop, taken, request, progress, within));
      // At once: what nobody holds is removed when somebody else has a turn.
      const hold = ready === null ? null : workshop.holds.take(ready.folder);
      return checkoutOf(git, request, ready?.head ?? null, hold, taken, AbortSignal.any([signal, closing]));
    } catch (error) {
      limit.end();
      lease?.release();
      signal.throwIfAborted();
      closing.throwIfAborted();
      if (isFailure(error)) throw error;
      throw failed('no work tree could be made of the repository', error);
    }
  };
}

function checkoutOf(
  git: Git,
  request: CheckoutRequest,
  head: Head | null,
  hold: Hold | null,
  lease: Lease,
  signal: AbortSignal,
): Checkout {
  const { failed } = providerFailures(request.provider);
  const dotGit = { branch: head?.branch ?? null, oid: head?.oid ?? null, isDefault: head?.isDefault ?? false, url: request.remote.url };
  const mtime = Math.floor(Date.now() / 1000);
  const archive = streamOf(
    async function* parts(ending) {
      try {
        yield* archiveParts(git, dotGit, hold?.folder ?? null, mtime, ending);
      } catch (error) {
        throw isFailure(error) ? error : failed('what is kept of the repository could not be read', error);
      }
    },
    signal,
    async (failure) => {
      // The next one is made from the mirror again.
      if (failure !== null) await hold?.spoil();
      hold?.release();
      lease.release();
    },
  );
  return { branch: dotGit.branch, commit: dotGit.oid, archive };
}

interface Bringing {
  readonly git: Git;
  readonly workshop: Workshop;
  readonly options: ResolvedOptions;
  readonly mirror: Mirror;
  readonly request: CheckoutRequest;
  readonly head: Head;
  readonly progress: CheckoutProgress;
}

/**
 * Gets what the mirror lacks of the commit, and makes it ready to be handed out. Answers with the commit, or with a newer one that
 * the branch is at meanwhile. Only while nobody else works on the mirror, so that it can be made anew where it is damaged.
 */
async function bring(bringing: Bringing, signal: AbortSignal): Promise<string> {
  const { workshop, mirror, progress } = bringing;
  try {
    return await attempt(bringing, signal);
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    // The mirror is a cache: what is wrong with it is gone when it is made anew.
    progress('fetching the repository anew');
    await workshop.folders.discard(mirror.gitDir);
    return await attempt(bringing, signal).catch((again: unknown) => {
      throw again instanceof Damage ? new Damage(again.message, { cause: error }) : again;
    });
  }
}

async function attempt({ git, workshop, options, mirror, request, head, progress }: Bringing, signal: AbortSignal): Promise<string> {
  const { folders, work } = workshop;
  await makeMirror(mirror, head.oid, folders.temporary());
  let oid = head.oid;
  if ((await commitAt(mirror, refOf(head.branch))) !== oid) {
    await removeLeftovers(mirror);
    progress('fetching the repository');
    try {
      oid = await work.use(signal, () => fetchHead(git, mirror, request, head, options, progress, signal));
    } catch (error) {
      await removeLeftovers(mirror);
      if ((await sizeOf(mirror.gitDir)) > largestRepository(options)) await folders.discard(mirror.gitDir);
      throw error;
    }
  }
  const folder = exportOf(mirror, oid);
  const isThere = await stat(folder).then(() => true, () => false);
  if (isThere) return oid;
  const temporary = folders.temporary();
  try {
    await mkdir(temporary, { mode: 0o700 });
    await work.use(signal, () => makeExport(git, mirror, oid, temporary, signal));
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return oid;
}

/** Where a commit is that was made ready. */
function exportOf({ exports }: Mirror, oid: string): string {
  return join(exports, oid);
}

import { isFailure } from '../../../domain/failure.ts';
import type { Checkout, CheckoutProgress, CheckoutRequest, RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { raceSignal, realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { archiveParts } from './archive.ts';
import { askHead } from './ask-head.ts';
import { bring, exportOf } from './bring.ts';
import { RefGone } from './fetch-failure.ts';
import { createGit, type Git } from './git.ts';
import type { Head } from './heads.ts';
import type { Hold } from './holds.ts';
import type { Lease } from './leases.ts';
import type { ResolvedOptions } from './options.ts';
import { streamOf } from './stream.ts';
import type { Workshop } from './workshop.ts';

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

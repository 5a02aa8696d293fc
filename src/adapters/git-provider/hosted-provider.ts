import { isFailure } from '../../domain/failure.ts';
import type { GitHostFamily } from '../../domain/microagent.ts';
import type { CheckResult } from '../../ports/check-result.ts';
import type { DirectoryListing, FileQuery, GitProvider, GitRemote, RepositoryInfo } from '../../ports/git-provider.ts';
import type { Clock } from '../../ports/clock.ts';
import { isOutage, type providerFailures } from '../shared/provider-failures.ts';
import { createSingleFlight } from '../shared/single-flight.ts';
import { startTimeout, withTimeout } from '../shared/timeout.ts';
import { createFileSelector, type FileSelector, type Listed } from './file-selector.ts';

/** What differs from host to host. The methods end when their signal fires. */
export interface GitHost {
  readonly name: string;
  readonly family: GitHostFamily;
  readonly hosts: readonly string[];
  /** The files that the selector wants have a date. */
  list(repository: string, selector: FileSelector, signal: AbortSignal): Promise<Listed>;
  /** Returns what the cache has of a listing, and when the host confirmed it, in ms since the epoch. */
  recall(repository: string, selector: FileSelector): Promise<RecalledListing | null>;
  find(repository: string, signal: AbortSignal): Promise<RepositoryInfo>;
  remote(repository: string, signal: AbortSignal): Promise<GitRemote>;
  check(signal: AbortSignal): Promise<CheckResult>;
  /** Returns a sentence that helps to mend what the check failed with, or an empty one. */
  adviceFor(failure: Error): string;
}

export interface RecalledListing extends Listed {
  readonly confirmedAt: number;
}

/** Limits the time of requests to a host, until it is closed. */
export interface TimeLimit {
  /** Rejects with `provider_timeout`, or with the reason of a signal. */
  run<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  close(): void;
}

type Failures = Pick<ReturnType<typeof providerFailures>, 'timedOut' | 'failed'>;

export function createTimeLimit(clock: Clock, timeoutMs: number, { timedOut, failed }: Failures): TimeLimit {
  const closing = new AbortController();
  return {
    run: (signal, work) => withTimeout(startTimeout(clock, timeoutMs, () => timedOut(timeoutMs), [signal, closing.signal]), work),
    close: () => closing.abort(failed('the provider is closed')),
  };
}

export interface HostedProviderOptions {
  readonly clock: Clock;
  readonly serveStaleForMs: number | null;
}

/**
 * Serves the repositories of a host. Equal requests at the same time share one run, which ends when no caller is left.
 * If the deployment wants that, a listing that was confirmed lately is served while the host is down.
 */
export function createHostedProvider(host: GitHost, limit: TimeLimit, { clock, serveStaleForMs }: HostedProviderOptions): GitProvider {
  const listings = createSingleFlight<Listed>();
  const finds = createSingleFlight<RepositoryInfo>();

  /** A caller that joined the run of another may want other files, or another directory, and then needs a run of its own. */
  async function list(repository: string, selector: FileSelector, signal: AbortSignal): Promise<DirectoryListing> {
    for (;;) {
      const listed = await listings.join(repository, signal, (nobodyLeft) =>
        limit.run(nobodyLeft, (within) => host.list(repository, selector, within)),
      );
      const listing = selector.select(listed);
      if (listing !== null) return listing;
    }
  }

  async function recall(repository: string, selector: FileSelector): Promise<DirectoryListing | null> {
    const recalled = serveStaleForMs === null ? null : await host.recall(repository, selector);
    if (recalled === null || clock.now() - recalled.confirmedAt > (serveStaleForMs ?? 0)) return null;
    const listing = selector.select(recalled);
    return listing === null ? null : { ...listing, confirmedAt: recalled.confirmedAt };
  }

  return {
    name: host.name,
    family: host.family,
    hosts: host.hosts,
    async listFiles(repository: string, query: FileQuery, signal?: AbortSignal) {
      const selector = createFileSelector(query);
      try {
        return await limit.run(signal, (within) => list(repository, selector, within));
      } catch (error) {
        const recalled = isOutage(error) ? await recall(repository, selector) : null;
        if (recalled === null) throw error;
        return recalled;
      }
    },
    find: (repository, signal) =>
      limit.run(signal, (within) =>
        finds.join(repository, within, (nobodyLeft) => limit.run(nobodyLeft, (inner) => host.find(repository, inner))),
      ),
    remote: (repository, signal) => limit.run(signal, (within) => host.remote(repository, within)),
    async check() {
      try {
        return await limit.run(undefined, (signal) => host.check(signal));
      } catch (error) {
        if (!isFailure(error)) return { ok: false, detail: 'the check failed' };
        return { ok: false, detail: `${error.message} ${host.adviceFor(error)}`.trim() };
      }
    },
    async close() {
      limit.close();
      await Promise.all([listings.settled(), finds.settled()]);
    },
  };
}

import { createHash } from 'node:crypto';
import type { DatedFile } from '../../../ports/git-provider.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import type { Api } from './api.ts';
import { readSince } from './changes.ts';
import type { Head } from './head.ts';
import { firstDate } from './history.ts';
import type { Knowledge } from './knowledge.ts';
import type { Snapshot } from './snapshot.ts';

export interface ListingRequest {
  /** Its commit is there. */
  readonly head: Head & { readonly sha: string };
  readonly directory: string;
  /** Is a path, relative to the directory, wanted? */
  readonly accepts: (path: string) => boolean;
}

/** Lists directories. What is known of them is not asked for again. */
export interface Listings {
  read(request: ListingRequest, signal: AbortSignal): Promise<readonly DatedFile[]>;
  /** By what is known alone; null where that is not all. */
  recall(request: ListingRequest): Promise<readonly DatedFile[] | null>;
  /** When no request is under way any more. */
  settled(): Promise<void>;
}

export interface ListingsOptions {
  readonly knowledge: Knowledge;
  readonly maxFiles: number;
  /** The API, whose requests end when the signal fires. */
  readonly apiFor: (signal: AbortSignal) => Api;
  /** Runs work within the time limit. */
  readonly limited: <T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}

export function createListings({ knowledge, maxFiles, apiFor, limited }: ListingsOptions): Listings {
  const flights = createSingleFlight<Snapshot>();

  async function readTree({ head, directory }: ListingRequest, signal: AbortSignal): Promise<Snapshot> {
    const { project, sha } = head;
    const known = await knowledge.snapshot(head, directory);
    if (known?.sha === sha) return known;
    const snapshot = await readSince(apiFor(signal), { project, sha, directory, maxFiles }, known);
    await knowledge.keepSnapshot(head, directory, snapshot);
    return snapshot;
  }

  /** What was found out is kept also when it is not all, so that the next attempt goes on from there. */
  async function readDates(
    { head, directory }: ListingRequest,
    snapshot: Snapshot,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<Snapshot> {
    const dates = new Map(snapshot.dates);
    const whole = { ...snapshot, dates };
    const first = new AbortController();
    const api = apiFor(AbortSignal.any([signal, first.signal]));
    const asking = paths.map(async (path) => {
      dates.set(path, await firstDate(api, head.project, head.sha, path));
    });
    try {
      await Promise.all(asking);
    } catch (error) {
      first.abort(error);
      await Promise.allSettled(asking);
      throw error;
    } finally {
      await knowledge.keepSnapshot(head, directory, whole);
    }
    return whole;
  }

  return {
    async read(request, signal) {
      const { head, directory } = request;
      const key = JSON.stringify([head.project, head.sha, directory]);
      const tree = await flights.join(key, signal, (nobodyLeft) => limited(nobodyLeft, (either) => readTree(request, either)));
      const wanted = wantedPaths(tree, request);
      const unknown = wanted.filter((path) => !tree.dates.has(path));
      if (unknown.length === 0) return datedFiles(tree, wanted);
      const digest = createHash('sha256').update(JSON.stringify(unknown)).digest('hex');
      const whole = await flights.join(`${key} ${digest}`, signal, (nobodyLeft) =>
        limited(nobodyLeft, (either) => readDates(request, tree, unknown, either)),
      );
      return datedFiles(whole, wanted);
    },
    async recall(request) {
      const known = await knowledge.snapshot(request.head, request.directory);
      if (known === null || known.sha !== request.head.sha) return null;
      const wanted = wantedPaths(known, request);
      return wanted.every((path) => known.dates.has(path)) ? datedFiles(known, wanted) : null;
    },
    settled: () => flights.settled(),
  };
}

function wantedPaths({ tree }: Snapshot, { directory, accepts }: ListingRequest): string[] {
  const from = directory === '' ? 0 : directory.length + 1;
  return [...tree.keys()].filter((path) => accepts(path.slice(from)));
}

function datedFiles({ dates }: Snapshot, paths: readonly string[]): DatedFile[] {
  return paths.flatMap((path) => {
    const createdAt = dates.get(path) ?? null;
    return createdAt === null ? [] : [{ path, createdAt }];
  });
}

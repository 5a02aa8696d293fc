import type { Clock } from '../../../ports/clock.ts';
import type { Head } from './head.ts';
import type { Confirmation, Knowledge } from './knowledge.ts';

/** Remembers when the host last confirmed each repository, for the time when it is down. */
export interface Confirmations {
  note(repository: string, head: Head): Promise<void>;
  /** Null where the last one is too old. */
  recent(repository: string): Promise<Confirmation | null>;
}

const maxNoted = 1000;

/** Nothing is noted where `forMs` is null. An unchanged head is written down only now and then. */
export function createConfirmations(knowledge: Knowledge, clock: Clock, forMs: number | null): Confirmations {
  if (forMs === null) return { note: async () => undefined, recent: async () => null };
  const interval = Math.min(60_000, forMs / 4);
  const noted = new Map<string, { readonly last: Confirmation; readonly written: Confirmation }>();

  return {
    async note(repository, head) {
      const last = { head, at: clock.now() };
      const before = noted.get(repository)?.written;
      const isDue = before === undefined || !isSame(before.head, head) || last.at - before.at >= interval;
      noted.delete(repository);
      noted.set(repository, { last, written: isDue ? last : before });
      const [oldest] = noted.keys();
      if (noted.size > maxNoted && oldest !== undefined) noted.delete(oldest);
      if (isDue) await knowledge.keepConfirmation(repository, last);
    },
    async recent(repository) {
      const last = noted.get(repository)?.last ?? (await knowledge.confirmation(repository));
      return last !== null && clock.now() - last.at <= forMs ? last : null;
    },
  };
}

function isSame(a: Head, b: Head): boolean {
  return a.project === b.project && a.name === b.name && a.sha === b.sha;
}

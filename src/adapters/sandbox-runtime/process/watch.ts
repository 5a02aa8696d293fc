import type { ChildProcess } from 'node:child_process';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import type { Reader, Sighting } from './observed-sandbox.ts';

export interface WatchOptions extends Reader {
  readonly pollMs: number;
  /** Ends what an ended command left behind. */
  readonly clearUp: (id: string) => Promise<void>;
}

/** Tells listeners when something happened to a sandbox that nobody asked for. */
export interface Watch {
  /** The leader is a child of this process: the system tells when it ends. */
  readonly own: (id: string, leader: ChildProcess) => void;
  /** It was seen so. One that lives and is not an own one is looked at again and again. */
  adopt(sighting: Sighting): void;
  readonly subscribe: (listener: (id: string) => void) => () => void;
  close(): void;
}

export function createWatch({ pollMs, read, readAll, recheck, clearUp }: WatchOptions): Watch {
  const listeners = new Set<{ readonly call: (id: string) => void }>();
  const own = new Map<string, ChildProcess>();
  const adopted = new Map<string, Sighting>();
  let looking = false;
  let timer: NodeJS.Timeout | undefined;
  let complete = false;

  const adopt = (sighting: Sighting): void => {
    const { id, state } = sighting.fact;
    if (own.has(id) || (state !== 'running' && state !== 'frozen')) adopted.delete(id);
    else adopted.set(id, sighting);
  };
  const changed = async (id: string): Promise<void> => {
    // What can't be cleared up or read now is read by whoever is woken.
    await clearUp(id)
      .then(() => read(id))
      .then(adopt, () => adopted.delete(id));
    for (const listener of listeners) listener.call(id);
  };
  const look = async (): Promise<void> => {
    if (!complete) {
      for (const sighting of await readAll()) {
        adopt(sighting);
        if (isLeaderless(sighting.fact)) await changed(sighting.fact.id);
      }
      complete = true;
    }
    const before = [...adopted.values()];
    for (const [index, fact] of (await recheck(before)).entries()) {
      const sighting = before[index];
      if (sighting === undefined || adopted.get(fact.id) !== sighting) continue;
      const { state } = sighting.fact;
      if (state !== fact.state || isLeaderless(fact) !== isLeaderless(sighting.fact)) await changed(fact.id);
    }
  };
  const keepLooking = async (): Promise<void> => {
    if (looking || listeners.size === 0) return;
    looking = true;
    await look().catch(() => {});
    looking = false;
    clearTimeout(timer);
    timer = setTimeout(() => void keepLooking(), pollMs).unref();
  };

  return {
    own(id, leader) {
      adopted.delete(id);
      own.set(id, leader);
      const ended = (): void => {
        if (own.get(id) === leader) own.delete(id);
        void changed(id);
      };
      if (leader.exitCode === null && leader.signalCode === null) leader.once('exit', ended);
      else ended();
    },
    adopt,
    subscribe(call) {
      const listener = { call };
      listeners.add(listener);
      void keepLooking();
      return () => void listeners.delete(listener);
    },
    close() {
      listeners.clear();
      clearTimeout(timer);
    },
  };
}

// Nothing else is to be said of a sandbox that lives.
function isLeaderless({ state, detail }: ObservedSandbox): boolean {
  return (state === 'running' || state === 'frozen') && detail !== null;
}

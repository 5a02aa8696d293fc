import { IncomingMessage } from 'node:http';
import { pause, realTimers } from '../../../shared/timeout.ts';
import type { Connection } from '../connect.ts';
import { labels } from '../identity.ts';

/** Tells when an execution may have ended, also one whose output nobody reads. */
export interface ExitNotices {
  /** Calls `wake` now and then. Answers with the function that ends it. */
  watch(exec: string, wake: () => void): () => void;
  /** Did the engine tell the end of this execution that is watched? */
  told(exec: string): boolean;
}

interface Watched {
  readonly wake: () => void;
  told: boolean;
}

const reconnectMs = 1_000;

/** One stream of the engine's events serves all; whenever it begins anew, all are woken. */
export function createExitNotices({ docker, call, closed, deployment }: Connection): ExitNotices {
  const watched = new Map<string, Watched>();
  let following = false;

  const read = async (): Promise<void> => {
    const filters = { type: ['container' as const], event: ['exec_die' as const], label: [`${labels.deployment}=${deployment}`] };
    const stream = await call((abortSignal) => docker.getEvents({ filters, abortSignal }), { signal: closed });
    if (!(stream instanceof IncomingMessage)) throw new TypeError('the client answers with something else than a response');
    stream.socket.setKeepAlive(true, 15_000);
    const end = (): void => void stream.destroy();
    closed.addEventListener('abort', end);
    try {
      for (const { wake } of watched.values()) wake();
      let text = '';
      for await (const chunk of stream) {
        const lines = `${text}${String(chunk)}`.split('\n');
        text = lines.pop() ?? '';
        for (const line of lines) notice(/"execID":"([0-9a-f]+)"/.exec(line)?.[1]);
      }
    } finally {
      closed.removeEventListener('abort', end);
      end();
    }
  };
  const notice = (exec: string | undefined): void => {
    const one = exec === undefined ? undefined : watched.get(exec);
    if (one === undefined) return;
    one.told = true;
    one.wake();
  };
  const follow = async (): Promise<void> => {
    if (following) return;
    following = true;
    while (watched.size > 0 && !closed.aborted) {
      // It is only a hint: whoever is woken looks for itself, and looks again when it begins anew.
      await read().catch(() => {});
      if (!closed.aborted) await pause(realTimers, reconnectMs, closed).catch(() => {});
    }
    following = false;
  };
  return {
    watch(exec, wake) {
      watched.set(exec, { wake, told: false });
      void follow();
      return () => void watched.delete(exec);
    },
    told: (exec) => watched.get(exec)?.told ?? false,
  };
}

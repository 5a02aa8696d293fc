import type { Reason } from '../../../src/domain/reason.ts';
import type { AgentStreams } from '../../../src/ports/agent-protocol.ts';

/** The session ended during a turn. */
export class LinkEnded extends Error {
  readonly reason: Reason;

  constructor(reason: Reason) {
    super(reason.code);
    this.reason = reason;
  }
}

/** The streams of an agent's process. An agent in memory only notices their end. */
export interface MemoryLink {
  /** Resolves with the reason when it has ended. */
  readonly closed: Promise<Reason>;
  readonly why: () => Reason | null;
  readonly end: (why: Reason) => void;
  /** Throws when it has ended. */
  readonly check: () => void;
  /** Runs the work. Rejects if the link ends first. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
}

export function createMemoryLink({ stdin, stdout }: AgentStreams): MemoryLink {
  const { promise: closed, resolve } = Promise.withResolvers<Reason>();
  const reader = stdout.getReader();
  const waiting = new Set<(error: LinkEnded) => void>();
  let why: Reason | null = null;

  const end = (reason: Reason): void => {
    if (why !== null) return;
    why = reason;
    reader.cancel().catch(() => {});
    stdin.close().catch(() => {});
    for (const reject of waiting) reject(new LinkEnded(reason));
    resolve(reason);
  };
  const check = (): void => {
    if (why !== null) throw new LinkEnded(why);
  };
  const drain = async (): Promise<void> => {
    while (!(await reader.read()).done);
    end({ code: 'agent_exited' });
  };
  drain().catch(() => end({ code: 'agent_connection_lost' }));

  return {
    closed,
    why: () => why,
    end,
    check,
    async during(work) {
      check();
      const { promise: ended, reject } = Promise.withResolvers<never>();
      waiting.add(reject);
      try {
        return await Promise.race([work(), ended]);
      } finally {
        waiting.delete(reject);
      }
    },
  };
}

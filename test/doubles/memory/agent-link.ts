import type { AgentStreams } from '../../../src/ports/agent-protocol.ts';

/** The session has ended while its agent was at work. */
export class LinkEnded extends Error {}

/** The streams of an agent's process, of which only the end matters to an agent that is in memory. */
export interface MemoryLink {
  /** Answers when it has ended, with why. */
  readonly closed: Promise<string>;
  readonly why: () => string | null;
  readonly end: (why: string) => void;
  /** Throws when it has ended. */
  readonly check: () => void;
  /** Does the work, and rejects when the link ends before. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
}

export function createMemoryLink({ stdin, stdout }: AgentStreams): MemoryLink {
  const { promise: closed, resolve } = Promise.withResolvers<string>();
  const reader = stdout.getReader();
  const waiting = new Set<(error: LinkEnded) => void>();
  let why: string | null = null;

  const end = (reason: string): void => {
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
    end('the agent has ended');
  };
  drain().catch(() => end('the connection to the agent broke off'));

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

import type { ReadinessProbe } from '../../ports/readiness-probe.ts';

/** What a URL answers: an HTTP status, `silent` where a connection is taken and nothing said, null where nobody listens. */
export type MemoryAnswer = number | 'silent' | null;

/** A probe for tests, which asks nobody. */
export interface MemoryProbe extends ReadinessProbe {
  /** From now on the URL answers so. */
  answer(url: string, answer: MemoryAnswer): void;
}

/** `otherwise` is what a URL answers of which nothing was said. */
export function createMemoryProbe(otherwise: MemoryAnswer = 200): MemoryProbe {
  const answers = new Map<string, MemoryAnswer>();
  const waiting = new Set<() => void>();
  return {
    answer(url, answer) {
      answers.set(url, answer);
      for (const ask of waiting) ask();
    },
    async untilReady({ probe }, urls, signal) {
      signal.throwIfAborted();
      if (probe.kind === 'none') return;
      const url = urls.find(({ port }) => port === probe.port)?.url;
      const isReady = (): boolean => {
        if (url === undefined) return false;
        const answer = answers.has(url) ? answers.get(url) : otherwise;
        if (probe.kind === 'tcp') return answer !== null;
        return typeof answer === 'number' && answer >= 200 && answer < 400;
      };
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const ask = (): void => {
        if (isReady()) resolve();
      };
      const abort = (): void => reject(signal.reason);
      waiting.add(ask);
      signal.addEventListener('abort', abort);
      ask();
      await promise.finally(() => {
        waiting.delete(ask);
        signal.removeEventListener('abort', abort);
      });
    },
  };
}

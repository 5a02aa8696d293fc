import type { ProbeMiss } from '../../../src/domain/readiness.ts';
import type { ReadinessProbe } from '../../../src/ports/readiness-probe.ts';

/** The answer of a URL: an HTTP status, `silent` if it accepts a connection and sends nothing, null if nobody listens. */
export type MemoryAnswer = number | 'silent' | null;

/** A probe for tests that sends no requests. */
export interface MemoryProbe extends ReadinessProbe {
  /** Sets the answer of the URL from now on. */
  answer(url: string, answer: MemoryAnswer): void;
}

/** `otherwise` is the answer of every other URL. */
export function createMemoryProbe(otherwise: MemoryAnswer = 200): MemoryProbe {
  const answers = new Map<string, MemoryAnswer>();
  const waiting = new Set<() => void>();
  return {
    answer(url, answer) {
      answers.set(url, answer);
      for (const ask of waiting) ask();
    },
    async untilReady({ probe }, urls, signal, missed = () => {}) {
      signal.throwIfAborted();
      if (probe.kind === 'none') return;
      const url = urls.find(({ port }) => port === probe.port)?.url;
      const attempt = (): ProbeMiss | null => {
        if (url === undefined) return { kind: 'unexposed' };
        return missOf(probe.kind, answers.get(url) ?? (answers.has(url) ? null : otherwise));
      };
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const ask = (): void => {
        const miss = attempt();
        if (miss === null) resolve();
        else missed(miss);
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

function missOf(kind: 'http' | 'tcp', answer: MemoryAnswer): ProbeMiss | null {
  if (answer === null) return { kind: 'refused' };
  if (kind === 'tcp') return null;
  if (answer === 'silent') return { kind: 'silent', withinMs: 1_000 };
  return answer >= 200 && answer < 400 ? null : { kind: 'answered', status: answer };
}

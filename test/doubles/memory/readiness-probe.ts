import type { ProbeMiss } from '../../../src/domain/readiness.ts';
import type { ReadinessProbe } from '../../../src/ports/readiness-probe.ts';

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

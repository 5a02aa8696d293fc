import type { ProbeMiss } from '../domain/readiness.ts';
import type { ExposedUrl } from '../domain/sandbox.ts';
import type { ReadinessRule } from '../domain/sandbox-spec.ts';

/** Called with the result of a failed attempt. Must not throw. */
export type ProbeListener = (miss: ProbeMiss) => void;

/** Checks whether the program in a sandbox is ready. Many probes run at once. There is no `close`: an ended probe holds nothing open. */
export interface ReadinessProbe {
  /**
   * Resolves when the rule's probe has succeeded once. HTTP: any 2xx or 3xx. TCP: a connection that stays open, or on which the program
   * sends something. None: at once. Until then it tries again, at its own intervals and without a time limit. It calls the listener for
   * each failed attempt before it resolves. If the signal fires, it rejects with `signal.reason` itself, and does not report the
   * interrupted attempt. It has no other failure.
   */
  untilReady(rule: ReadinessRule, urls: readonly ExposedUrl[], signal: AbortSignal, missed?: ProbeListener): Promise<void>;
}

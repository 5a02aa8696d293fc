import type { ProbeMiss } from '../domain/readiness.ts';
import type { ExposedUrl } from '../domain/sandbox.ts';
import type { ReadinessRule } from '../domain/sandbox-spec.ts';

/** Called with the result of an attempt that did not find the program ready. Must not throw. */
export type ProbeListener = (miss: ProbeMiss) => void;

/** Finds out whether the program in a sandbox serves. Many probes run at once. There is no `close`: an ended probe holds nothing open. */
export interface ReadinessProbe {
  /**
   * Resolves when the rule's probe has succeeded once. HTTP: any 2xx or 3xx. TCP: a connection that is held, or on which the program
   * sends something. None: at once. It tries again until then, in intervals of its own, and has no time limit of its own. It calls the
   * listener for each failed attempt, for the last one before it resolves. When the signal fires, it rejects with `signal.reason`
   * itself, not with an error around it, and the interrupted attempt is not reported. It has no other failure.
   */
  untilReady(rule: ReadinessRule, urls: readonly ExposedUrl[], signal: AbortSignal, missed?: ProbeListener): Promise<void>;
}

import type { ProbeMiss } from '../domain/readiness.ts';
import type { ExposedUrl } from '../domain/sandbox.ts';
import type { ReadinessRule } from '../domain/sandbox-spec.ts';

/** Receives what an attempt met that did not find the program ready. */
export type ProbeListener = (miss: ProbeMiss) => void;

/** Finds out whether the program in a sandbox serves. */
export interface ReadinessProbe {
  /**
   * Resolves when the rule's probe has succeeded once (HTTP: any 2xx or 3xx; TCP: a connection that stays open, or on which the
   * program says something; none: at once). Tries again until then, without a limit of its own, and calls the listener after
   * each failed attempt. Rejects with the signal's reason when it fires; the attempt that it interrupts is not reported.
   */
  untilReady(rule: ReadinessRule, urls: readonly ExposedUrl[], signal: AbortSignal, missed?: ProbeListener): Promise<void>;
}

import type { ProbeMiss } from '../domain/readiness.ts';
import type { ExposedUrl } from '../domain/sandbox.ts';
import type { ReadinessRule } from '../domain/sandbox-spec.ts';

/** Told what an attempt has met that did not find the program ready. */
export type ProbeListener = (miss: ProbeMiss) => void;

/** Finds out whether the program in a sandbox serves. */
export interface ReadinessProbe {
  /**
   * Answers when the rule's probe has succeeded once (HTTP: any 2xx or 3xx; TCP: a connection that is held, or said something on; none: at once). Asks again
   * until then, and tells the listener of each attempt that came to nothing; it has been told of the last one when this
   * ends. Rejects with the signal's reason when it fires, and an attempt that this cuts short is not told of; knows no
   * limit of its own.
   */
  untilReady(rule: ReadinessRule, urls: readonly ExposedUrl[], signal: AbortSignal, missed?: ProbeListener): Promise<void>;
}

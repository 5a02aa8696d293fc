import type { ExposedUrl } from '../domain/sandbox.ts';
import type { ReadinessRule } from '../domain/sandbox-spec.ts';

/** Finds out whether the program in a sandbox serves. */
export interface ReadinessProbe {
  /**
   * Answers when the rule's probe has succeeded once (HTTP: any 2xx or 3xx; TCP: connected; none: at once). Asks again
   * until then. Rejects with the signal's reason when it fires; knows no limit of its own.
   */
  untilReady(rule: ReadinessRule, urls: readonly ExposedUrl[], signal: AbortSignal): Promise<void>;
}

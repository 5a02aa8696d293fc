import type { api } from '../client/index.ts';
import { duration } from './format.ts';
import { type Resource, useResource } from './live.ts';
import { currentSession } from './session.ts';
import { texts } from './texts.ts';

/** Loads the sandbox specs; the first one is the default. */
export function useSpecs(): Resource<readonly api.SandboxSpec[]> {
  return useResource((signal) => Array.fromAsync(currentSession().client.items('GET /api/v1/sandbox-specs/search', { signal })), []);
}

/** Describes what happens to an idle sandbox. */
export function idlePolicyText(rule: api.RestRule): string {
  const steps = [
    [rule.freeze_after_seconds, texts.rest.freeze], [rule.stop_after_seconds, texts.rest.stop],
    [rule.delete_after_seconds, texts.rest.delete], [rule.max_life_seconds, texts.rest.life],
  ] as const;
  return steps.flatMap(([seconds, say]) => (seconds === null ? [] : [say(duration(seconds))])).join(' ') || texts.rest.none;
}

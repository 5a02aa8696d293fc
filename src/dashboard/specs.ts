import type { api } from '../client/index.ts';
import { duration } from './format.ts';
import { type Resource, useResource } from './live-resources.ts';
import { currentSession } from './session.ts';

/** Loads the sandbox specs; the first one is the default. */
export function useSpecs(): Resource<readonly api.SandboxSpec[]> {
  return useResource((signal) => Array.fromAsync(currentSession().client.items('GET /api/v1/sandbox-specs/search', { signal })), []);
}

/** Returns the label of the choice of no spec. */
export function defaultSpecLabel([first]: readonly api.SandboxSpec[]): string {
  return first === undefined ? 'Default' : `Default (${first.id})`;
}

/** Describes what happens to an idle sandbox. */
export function idlePolicyText(rule: api.RestRule): string {
  const steps = [
    ['Frozen', rule.freeze_after_seconds, 'after its last use'],
    ['Stopped', rule.stop_after_seconds, 'after a freeze'],
    ['Deleted', rule.delete_after_seconds, 'after a stop'],
    ['Deleted', rule.max_life_seconds, 'after its creation, even if it is in use'],
  ] as const;
  const sentences = steps.flatMap(([done, seconds, since]) => (seconds === null ? [] : [`${done} ${duration(seconds)} ${since}.`]));
  return sentences.join(' ') || 'None: it runs until somebody pauses or deletes it.';
}

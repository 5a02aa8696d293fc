import type { ReasonOf } from './reason.ts';
import type { ReadinessRule } from './sandbox-spec.ts';

/** What an attempt of a readiness probe met if it did not find the program ready. */
export type ProbeMiss =
  /** An HTTP status that is neither 2xx nor 3xx. */
  | { readonly kind: 'answered'; readonly status: number }
  /** Nobody listens there. */
  | { readonly kind: 'refused' }
  /** The attempt was given up after so many milliseconds. */
  | { readonly kind: 'silent'; readonly withinMs: number }
  /** The connection was closed without an answer. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'host_unknown' }
  | { readonly kind: 'host_unreachable' }
  /** The answer is not of the protocol. */
  | { readonly kind: 'malformed' }
  | { readonly kind: 'certificate_refused' }
  /** The path of the rule can't be requested. */
  | { readonly kind: 'invalid_path' }
  /** Anything else; the code of the system's error. */
  | { readonly kind: 'failed'; readonly errorCode: string | null }
  /** The sandbox does not expose the port that the rule names. */
  | { readonly kind: 'unexposed' };

/** Returns what the probe met last as a reason; null if the rule probes nothing. The query of a path may be secret and is left out. */
export function probeMissed({ probe }: ReadinessRule, miss: ProbeMiss): ReasonOf<'probe_missed'> | null {
  switch (probe.kind) {
    case 'none':
      return null;
    case 'tcp':
      return { code: 'probe_missed', probe: 'tcp', port: probe.port, path: null, miss };
    case 'http':
      return { code: 'probe_missed', probe: 'http', port: probe.port, path: probe.path.replace(/\?.*$/su, ''), miss };
  }
}

import type { ReasonOf } from './reason.ts';
import type { ReadinessRule } from './sandbox-spec.ts';

/** Why an attempt of a readiness probe failed. */
export type ProbeMiss =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'refused' }
  /** The attempt was given up after `withinMs` milliseconds. */
  | { readonly kind: 'silent'; readonly withinMs: number }
  | { readonly kind: 'closed' }
  | { readonly kind: 'host_unknown' }
  | { readonly kind: 'host_unreachable' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'certificate_refused' }
  | { readonly kind: 'invalid_path' }
  /** Anything else; the code of the system's error. */
  | { readonly kind: 'failed'; readonly errorCode: string | null }
  | { readonly kind: 'unexposed' };

/** Returns the failed attempt as a reason; null if the rule probes nothing. The query of a path may be secret and is left out. */
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

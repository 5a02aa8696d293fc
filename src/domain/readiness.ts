import type { ReadinessRule } from './sandbox-spec.ts';

/** What an attempt of a readiness probe has met, where it did not find the program ready. */
export type ProbeMiss =
  /** An HTTP status that is neither 2xx nor 3xx. */
  | { readonly kind: 'answered'; readonly status: number }
  /** Nobody listens there. */
  | { readonly kind: 'refused' }
  /** It was given up after so many milliseconds. */
  | { readonly kind: 'silent'; readonly withinMs: number }
  /** Anything else; the reason is in words, and holds nothing that the program has sent. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The rule names a port that the sandbox does not expose: nobody can be asked. */
  | { readonly kind: 'unexposed' };

/** What the probe has met last, for the `statusDetail` of a start that waits for it. */
export function lastProbe({ probe }: ReadinessRule, last: ProbeMiss): string {
  return `the last probe of ${askedBy(probe)}: ${wordsOf(last)}`;
}

function askedBy(probe: ReadinessRule['probe']): string {
  switch (probe.kind) {
    case 'none':
      return 'nothing';
    case 'tcp':
      return `tcp port ${probe.port}`;
    case 'http':
      // A query may hold what is only for the program.
      return `http port ${probe.port} ${probe.path.replace(/\?.*$/su, '')}`;
  }
}

function wordsOf(miss: ProbeMiss): string {
  switch (miss.kind) {
    case 'answered':
      return `answered ${miss.status}`;
    case 'refused':
      return 'connection refused';
    case 'silent':
      return `no answer within ${miss.withinMs / 1000} s`;
    case 'failed':
      return miss.reason;
    case 'unexposed':
      return 'the port is not exposed';
  }
}

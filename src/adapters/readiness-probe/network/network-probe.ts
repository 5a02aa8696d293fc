import { setTimeout as pause } from 'node:timers/promises';
import type { ProbeMiss } from '../../../domain/readiness.ts';
import type { ReadinessRule } from '../../../domain/sandbox-spec.ts';
import type { ReadinessProbe } from '../../../ports/readiness-probe.ts';
import { askHttp, askTcp, type Attempt } from './attempts.ts';

export interface NetworkProbeOptions {
  /** How long an attempt may take before it is given up for another. */
  readonly attemptMs?: number;
  /** The pause after the first attempt; each is half as long again as the one before, */
  readonly firstPauseMs?: number;
  /** and none is longer than this. */
  readonly longestPauseMs?: number;
}

/** Asks over the network, as a client of the sandbox would. */
export function createNetworkProbe(options: NetworkProbeOptions = {}): ReadinessProbe {
  const { attemptMs = 1_000, firstPauseMs = 5, longestPauseMs = 100 } = options;
  return {
    async untilReady({ probe }, urls, signal, missed = () => {}) {
      signal.throwIfAborted();
      if (probe.kind === 'none') return;
      const attempt = attemptFor(probe);
      const url = urls.find(({ port }) => port === probe.port)?.url;
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
        const miss: ProbeMiss | null = url === undefined ? { kind: 'unexposed' } : await attempt(new URL(url), attemptMs, signal);
        signal.throwIfAborted();
        if (miss === null) return;
        missed(miss);
        // The abort error of the pause is not the signal's reason.
        await pause(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
  };
}

type NetworkRule = Exclude<ReadinessRule['probe'], { readonly kind: 'none' }>;

function attemptFor(rule: NetworkRule): Attempt {
  return rule.kind === 'tcp' ? askTcp : askHttp(rule.path);
}

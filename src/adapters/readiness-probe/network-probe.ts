import http from 'node:http';
import https from 'node:https';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProbeMiss } from '../../domain/readiness.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';

/** The pause after the first attempt, in milliseconds. Each next pause is 1.5 times as long, up to the longest. */
const firstPauseMs = 5;
const longestPauseMs = 100;

/** Probes over the network, as a client of the sandbox does. After `attemptMs` an attempt counts as failed and the next one starts. */
export function createNetworkProbe({ attemptMs = 1_000 } = {}): ReadinessProbe {
  return {
    async untilReady({ probe }, urls, signal, missed = () => {}) {
      signal.throwIfAborted();
      if (probe.kind === 'none') return;
      const attempt = probe.kind === 'tcp' ? askTcp : askHttp(probe.path);
      const url = urls.find(({ port }) => port === probe.port)?.url;
      for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
        const miss: ProbeMiss | null = url === undefined ? { kind: 'unexposed' } : await attempt(new URL(url), attemptMs, signal);
        signal.throwIfAborted();
        if (miss === null) return;
        missed(miss);
        // Throws the signal's reason instead of the abort error of the pause.
        await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
    },
  };
}

/** Tries once, for `withinMs` at most, or until the signal fires. Returns null if it succeeds. Never rejects. */
type Attempt = (url: URL, withinMs: number, signal: AbortSignal) => Promise<ProbeMiss | null>;

/** Succeeds if a GET of the path returns 2xx or 3xx. Does not follow redirects. */
function askHttp(path: string): Attempt {
  return (url, withinMs, signal) => {
    const { promise, resolve } = Promise.withResolvers<ProbeMiss | null>();
    const { request } = url.protocol === 'https:' ? https : http;
    const ends = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
    try {
      // Uses a new connection: a kept one could lead to a program that has ended.
      request(url, { path, agent: false, signal: ends })
        .on('response', (response) => {
          const { statusCode: status = 0 } = response;
          resolve(status >= 200 && status < 400 ? null : { kind: 'answered', status });
          response.destroy();
        })
        .on('error', (error) => resolve(missOf(error, withinMs)))
        .end();
    } catch {
      resolve({ kind: 'invalid_path' });
    }
    return promise;
  };
}

/** How long a connection must stay open, in milliseconds. Docker's proxy accepts every one, and closes it if no program listens. */
const keptOpenMs = 100;

/** Succeeds if the program accepts a connection and then keeps it open or sends data. */
async function askTcp(...[url, withinMs, signal]: Parameters<Attempt>): ReturnType<Attempt> {
  const { promise, resolve } = Promise.withResolvers<ProbeMiss | null>();
  const ends = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  let held: NodeJS.Timeout | undefined;
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const socket = connect({ host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port, signal: ends })
    .on('connect', () => (held = setTimeout(resolve, Math.min(keptOpenMs, withinMs / 2), null)))
    .on('data', () => resolve(null))
    .on('end', () => resolve(closedUnanswered))
    .on('error', (error) => resolve(missOf(error, withinMs)));
  const miss = await promise;
  clearTimeout(held);
  socket.destroy();
  return miss;
}

const closedUnanswered: ProbeMiss = { kind: 'closed' };

const misses: readonly (readonly [codes: RegExp, miss: ProbeMiss])[] = [
  [/^ECONNREFUSED$/u, { kind: 'refused' }],
  [/^(?:ECONNRESET|EPIPE)$/u, closedUnanswered],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/u, { kind: 'host_unknown' }],
  [/^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL)$/u, { kind: 'host_unreachable' }],
  [/^HPE_/u, { kind: 'malformed' }],
  [/CERT|SIGNATURE|ISSUER|TLS|SSL|EPROTO/u, { kind: 'certificate_refused' }],
];

function missOf(error: Error, withinMs: number): ProbeMiss {
  if (error.name === 'AbortError') return { kind: 'silent', withinMs };
  const errorCode = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return misses.find(([codes]) => errorCode !== null && codes.test(errorCode))?.[1] ?? { kind: 'failed', errorCode };
}

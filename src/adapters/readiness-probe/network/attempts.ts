import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';
import type { ProbeMiss } from '../../../domain/readiness.ts';
import { realTimers } from '../../shared/timeout.ts';
import { closedUnanswered, missOf } from './misses.ts';

/** One attempt, given up after so many milliseconds or when the signal fires. Answers with what it has met, null where it succeeded; never fails. */
export type Attempt = (url: URL, withinMs: number, signal: AbortSignal) => Promise<ProbeMiss | null>;

/** Does a GET of the path answer with 2xx or 3xx? Redirections are not followed. */
export function askHttp(path: string): Attempt {
  return (url, withinMs, unwanted) => {
    const { promise, resolve } = Promise.withResolvers<ProbeMiss | null>();
    const request = url.protocol === 'https:' ? requestHttps : requestHttp;
    const signal = AbortSignal.any([unwanted, AbortSignal.timeout(withinMs)]);
    try {
      // A connection of its own: one that was kept could be to a program that has ended since.
      request({ hostname: hostOf(url), port: portOf(url), path, agent: false, signal })
        .on('response', (response) => {
          const { statusCode: status = 0 } = response;
          resolve(status >= 200 && status < 400 ? null : { kind: 'answered', status });
          response.destroy();
        })
        .on('error', (error) => resolve(missOf(error, withinMs)))
        .end();
    } catch {
      resolve({ kind: 'failed', reason: 'it is no path that can be asked for' });
    }
    return promise;
  };
}

/**
 * How long a connection is held by whoever really listens. A proxy in front of the sandbox takes one in any case, Docker's own for
 * one, and lets go of it at once where nobody listens behind.
 */
const heldMs = 100;

/** Does it take a connection, and keep it or say something? */
export const askTcp: Attempt = async (url, withinMs, unwanted) => {
  const { promise, resolve } = Promise.withResolvers<ProbeMiss | null>();
  const signal = AbortSignal.any([unwanted, AbortSignal.timeout(withinMs)]);
  let forget: (() => void) | undefined;
  const socket = connect({ host: hostOf(url), port: portOf(url), signal })
    .on('connect', () => (forget = realTimers.after(Math.min(heldMs, withinMs / 2), () => resolve(null))))
    .on('data', () => resolve(null))
    .on('end', () => resolve(closedUnanswered))
    .on('error', (error) => resolve(missOf(error, withinMs)));
  try {
    return await promise;
  } finally {
    forget?.();
    socket.destroy();
  }
};

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';
import type { ProbeMiss } from '../../domain/readiness.ts';
import { missOf } from './misses.ts';

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

/** Does it take a connection? */
export const askTcp: Attempt = (url, withinMs, unwanted) => {
  const { promise, resolve } = Promise.withResolvers<ProbeMiss | null>();
  const signal = AbortSignal.any([unwanted, AbortSignal.timeout(withinMs)]);
  const socket = connect({ host: hostOf(url), port: portOf(url), signal })
    .on('connect', () => {
      resolve(null);
      socket.destroy();
    })
    .on('error', (error) => resolve(missOf(error, withinMs)));
  return promise;
};

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

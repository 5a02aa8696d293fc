import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect } from 'node:net';

/** One attempt. Answers whether it succeeded, and false when the signal fires; never fails. */
export type Attempt = (url: URL, signal: AbortSignal) => Promise<boolean>;

/** Does a GET of the path answer with 2xx or 3xx? Redirections are not followed. */
export function askHttp(url: URL, signal: AbortSignal, path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  try {
    // A connection of its own: one that was kept could be to a program that has ended since.
    request({ hostname: hostOf(url), port: portOf(url), path, agent: false, signal })
      .on('response', (response) => {
        const { statusCode = 0 } = response;
        resolve(statusCode >= 200 && statusCode < 400);
        response.destroy();
      })
      .on('error', () => resolve(false))
      .end();
  } catch {
    // A path that no request can have.
    resolve(false);
  }
  return promise;
}

/** Does it take a connection? */
export function askTcp(url: URL, signal: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostOf(url), port: portOf(url), signal })
    .on('connect', () => {
      resolve(true);
      socket.destroy();
    })
    .on('error', () => resolve(false));
  return promise;
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function portOf({ port, protocol }: URL): number {
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}

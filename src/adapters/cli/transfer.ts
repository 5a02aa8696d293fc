import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connectionLost, isPage, unreachable } from '../../client/failures.ts';
import { failureIn, type SkepClient, type SkepError } from '../../client/index.ts';

interface Transfer {
  readonly method: 'GET' | 'PUT';
  readonly path: string;
  readonly body?: Readable;
  /** The length of the body, if it is known. */
  readonly length?: number;
  readonly signal?: AbortSignal;
}

/**
 * Sends a request whose body or response can be large and slow. Node's `fetch` fails if the server reads or sends nothing for five minutes.
 * Returns the body of the response. Throws a `SkepError`, the error of the body, or the signal's reason. If the response breaks off, or the
 * signal fires later, the returned stream fails with `connection_lost`.
 */
export async function transfer({ url, headers }: SkepClient, { method, path, body, length, signal }: Transfer): Promise<Readable> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const content = {
    ...(body !== undefined && { 'Content-Type': 'application/octet-stream' }),
    ...(length !== undefined && { 'Content-Length': String(length) }),
  };
  const send = /^https:/i.test(url) ? secureRequest : plainRequest;
  const request = send(url + path, { method, headers: { ...headers, ...content }, ...(signal !== undefined && { signal }) });
  request.on('response', resolve);
  // The first error counts: if the request fails, so does the body, and the other way round.
  request.on('error', (error) => reject(signal?.aborted === true ? signal.reason : failureOf(error, url, body !== undefined)));
  if (body === undefined) request.end();
  else {
    body.on('error', reject);
    // Ignores the error here: the request or the response reports it too, or the server refuses the rest and says why.
    pipeline(body, request, () => {});
  }
  const response = await promise;
  const { statusCode = 0, headers: { 'content-type': type } } = response;
  const answer = contentOf(response);
  if (statusCode >= 200 && statusCode < 300 && !isPage(type)) return answer;
  // The upload ends last, since the end of the request also ends the response.
  throw failureIn(statusCode, await text(answer).finally(() => body?.destroy()));
}

/** Returns the body of a response. It fails with `connection_lost` if the response breaks off. */
function contentOf(response: IncomingMessage): Readable {
  const content = new PassThrough();
  content.on('close', () => response.destroy());
  // An empty listener: without one, an error before the first read would end the process.
  content.on('error', () => {});
  response.on('error', (error) => content.destroy(connectionLost(undefined, error))).pipe(content);
  return content;
}

/** Returns the failure of a request that got no response. */
function failureOf(error: NodeJS.ErrnoException, url: string, isUpload: boolean): SkepError {
  if (!isUpload || !['ECONNRESET', 'EPIPE'].includes(error.code ?? '')) return unreachable(url, error);
  return connectionLost('The connection was lost before the server confirmed the upload. Run the command again.', error);
}

/** Reads a response to its end and ignores its body. */
export async function discardBody(answer: Promise<Readable>): Promise<void> {
  for await (const _ of await answer);
}

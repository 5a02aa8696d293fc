import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { StreamedBody } from '../../../src/adapters/http/operation.ts';
import type { RequestContext } from '../../../src/adapters/http/request-context.ts';
import { sendStream } from '../../../src/adapters/http/send-stream.ts';

/** Returns a request and its response, whose connection is open. */
async function exchange(): Promise<readonly [IncomingMessage, ServerResponse]> {
  const server = createServer();
  onTestFinished(() => void server.close());
  const requested = new Promise<readonly [IncomingMessage, ServerResponse]>((resolve) => {
    server.once('request', (request, response) => resolve([request, response]));
  });
  server.listen(0, '127.0.0.1', () => get({ port: (server.address() as AddressInfo).port }).on('error', () => {}));
  return await requested;
}

test('a stream whose end has come before it begins is cut off, and its parts are not left open', async () => {
  const [request, response] = await exchange();
  let isLeft = false;
  const parts = (async function* () {
    try {
      yield 'a part';
      yield 'another part';
    } finally {
      isLeft = true;
    }
  })();
  const context = { http: { options: {} }, request, response, operation: null } as unknown as RequestContext;
  await sendStream(context, new StreamedBody(parts, AbortSignal.abort()));
  expect([response.destroyed, isLeft]).toEqual([true, true]);
});

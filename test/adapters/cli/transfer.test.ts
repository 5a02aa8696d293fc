import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { textOfError } from '../../../src/adapters/cli/console.ts';
import { transfer } from '../../../src/adapters/cli/transfer.ts';
import { createClient } from '../../../src/client/index.ts';

const path = '/api/v1/sandboxes/sb/archive';

/** Starts a server, and returns its URL. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield new Uint8Array(65_536);
}

/** Uploads the body. Returns the failure, and the line that a command prints for it. */
async function upload(url: string, body: Readable): Promise<{ readonly failure: unknown; readonly line: string }> {
  const failure = await transfer(createClient({ url, key: 'key' }), { method: 'PUT', path, body }).then(() => null, (error: unknown) => error);
  return { failure, line: textOfError(failure) };
}

test('an upload whose connection breaks off says that it must be repeated', async () => {
  const url = await serve((request) => request.once('data', () => request.socket.destroy()));
  const body = Readable.from(endless());
  const { failure, line } = await upload(url, body);
  expect(failure).toMatchObject({ code: 'connection_lost' });
  expect(line).toBe('The connection was lost before the server confirmed the upload. Run the command again.');
  expect(body.destroyed).toBe(true);
});

test('an upload to a server that is not there says so', async () => {
  const { failure, line } = await upload('http://127.0.0.1:1', Readable.from(endless()));
  expect(failure).toMatchObject({ code: 'unreachable' });
  expect(line).toContain('No Skep server answers at http://127.0.0.1:1 (ECONNREFUSED).');
});

test('an address is secure in capital letters too', async () => {
  const { failure } = await upload('HTTPS://127.0.0.1:1', Readable.from(endless()));
  expect(failure).toMatchObject({ code: 'unreachable' });
});

test('an upload whose source fails throws the error of the source', async () => {
  const url = await serve((request) => request.resume());
  const broken = new Error('the disk is broken');
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(65_536);
    throw broken;
  }
  expect((await upload(url, Readable.from(failing()))).failure).toBe(broken);
});

test('a refused upload throws the reason, also if it arrives later than the status', async () => {
  const problem = JSON.stringify({ code: 'sandbox_not_found', detail: 'There is no sandbox sb.' });
  const url = await serve((request, response) => {
    response.writeHead(404, { 'Content-Type': 'application/problem+json' }).flushHeaders();
    let bytes = 0;
    request.on('data', (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > 32 << 20) response.end(problem);
    });
  });
  const body = Readable.from(endless());
  expect((await upload(url, body)).failure).toMatchObject({ code: 'sandbox_not_found' });
  expect(body.destroyed).toBe(true);
});

test('a login page in front of the server is a failure', async () => {
  const url = await serve((request, response) => {
    request.resume();
    response.setHeader('Content-Type', 'Text/HTML; charset=utf-8').end('<h1>Log in</h1>');
  });
  expect((await upload(url, Readable.from('text'))).failure).toMatchObject({ code: 'unexpected_answer', status: 200 });
});

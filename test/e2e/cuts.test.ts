import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer, type Server as TcpServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, object, type Client } from '../support/client.ts';
import { below, printedSeed, seeded } from '../support/seeded.ts';
import { startSandbox, startServer, type Server } from '../support/server.ts';

const key = 'a-static-key-of-this-test';
const random = seeded(printedSeed('the offsets at which connections are cut'));
const cutsOfEach = 334;
const content = randomBytes(400_000);

let server: Server;
let relay: TcpServer;
let call: Client;
let base = '';
/** The number of bytes in both directions after which the next connection is cut. */
let budget = Infinity;
const counted = { cuts: 0 };

/** Forwards bytes between a client and the server until the connection's budget is used up. */
function serve(client: Socket): void {
  let left = budget;
  const upstream = connect(Number(new URL(server.url).port), '127.0.0.1');
  const end = (): void => {
    client.destroy();
    upstream.destroy();
  };
  const hand = (from: Socket, to: Socket): void => {
    from.on('data', (chunk: Buffer) => {
      const part = chunk.subarray(0, left);
      left -= part.length;
      if (!to.write(part)) from.pause();
      if (part.length === chunk.length) return;
      counted.cuts += 1;
      to.end(() => end());
    });
    to.on('drain', () => from.resume());
    from.on('error', end).on('close', end);
  };
  hand(client, upstream);
  hand(upstream, client);
}

interface Reply {
  readonly status: number;
  readonly body: Buffer;
  /** Was the response complete? */
  readonly isWhole: boolean;
}

/** Sends a request over a new connection. Returns null if it was cut before the response began. */
async function send(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: Buffer): Promise<Reply | null> {
  const { port } = relay.address() as AddressInfo;
  const sent = request({ host: '127.0.0.1', port, method, path, agent: false, headers: { 'X-Session-API-Key': key, ...headers } });
  return await new Promise((resolve) => {
    sent.on('error', () => resolve(null));
    sent.on('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => {});
      response.on('close', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts), isWhole: response.complete }));
    });
    sent.end(body);
  });
}

/** Reads the content again and again, and continues after each cut, until enough connections were cut. */
async function readThroughCuts(readFrom: (offset: number) => Promise<Reply | null>): Promise<void> {
  for (const end = counted.cuts + cutsOfEach; counted.cuts < end;) {
    let read = Buffer.alloc(0);
    for (let isWhole = false; !isWhole;) {
      budget = 200 + below(random, 60_000);
      const reply = await readFrom(read.length);
      if (reply === null) continue;
      if (reply.status >= 400) expect(reply).toMatchObject({ status: 416 });
      else read = Buffer.concat([read, reply.body]);
      isWhole = reply.isWhole;
    }
    expect(read.equals(content)).toBe(true);
  }
}

beforeAll(async () => {
  server = await startServer({ env: { SKEP_API_KEY: key } });
  relay = createServer(serve).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  call = createClient(server.url, key);
  base = `/api/v1/sandboxes/${(await startSandbox(call)).id}`;
  budget = Infinity;
  expect(await send('PUT', `${base}/files?path=/workspace/content`, {}, content)).toMatchObject({ status: 200 });
});
afterAll(async () => {
  relay.close();
  await server.close();
});

test('an output is read completely through repeated connection losses, each byte once', async () => {
  const { id } = object(await call('POST', `${base}/executions`, { command: ['cat', 'content'] }));
  await readThroughCuts((offset) => send('GET', `${base}/executions/${String(id)}/output?after=${offset}&follow=true`));
});

test('a download continues with range requests after connection losses', async () => {
  const etag = (await fetch(`${server.url}${base}/files?path=/workspace/content`, { method: 'HEAD', headers: { 'X-Session-API-Key': key } })).headers.get('etag') ?? '';
  await readThroughCuts((offset) => send('GET', `${base}/files?path=/workspace/content`, offset === 0 ? {} : { Range: `bytes=${offset}-`, 'If-Range': etag }));
});

test('an interrupted upload keeps the old file, and a complete one replaces it', async () => {
  const path = `${base}/files?path=/workspace/uploaded`;
  const read = async (): Promise<Buffer> => {
    budget = Infinity;
    return (await send('GET', path))?.body ?? Buffer.alloc(0);
  };
  let kept = randomBytes(50_000);
  budget = Infinity;
  expect(await send('PUT', path, {}, kept)).toMatchObject({ status: 200 });
  for (const end = counted.cuts + cutsOfEach; counted.cuts < end;) {
    const next = randomBytes(50_000);
    budget = 200 + below(random, 60_000);
    const reply = await send('PUT', path, {}, next);
    const found = await read();
    // If only the response was lost, the file was written.
    const isWritten = found.equals(next);
    expect(isWritten || found.equals(kept)).toBe(true);
    if (reply?.isWhole === true) expect([reply.status, isWritten]).toEqual([200, true]);
    if (isWritten) kept = next;
  }
  const { items } = object(await call('GET', `${base}/directories?path=/workspace`)) as { items?: { name: string }[] };
  expect((items ?? []).map(({ name }) => name).toSorted()).toEqual(['content', 'uploaded']);
});

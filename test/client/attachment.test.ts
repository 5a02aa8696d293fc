import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Attachment } from '../../src/client/attachment.ts';
import { type ClientSocket, Connection } from '../../src/client/connection.ts';
import type { Execution } from '../../src/client/openapi.ts';

type Listener = (message: { readonly data: unknown }) => void;

/** A WebSocket of which the test is the server. */
class FakeSocket implements ClientSocket {
  binaryType = '';
  readonly readyState = 0;
  readonly sent: string[] = [];
  readonly #listeners = new Map<string, Listener>();

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, listener);
  }

  send(data: string | Uint8Array<ArrayBuffer>): void {
    this.sent.push(typeof data === 'string' ? data : new TextDecoder().decode(data));
  }

  close(): void {
    this.emit('close');
  }

  emit(type: 'open' | 'close' | 'message', data: unknown = null): void {
    this.#listeners.get(type)?.({ data });
  }
}

const ticketOnly = async (): Promise<Response> => Response.json({ ticket: 'one' });

async function attached(lives: readonly ((socket: FakeSocket) => void)[], fetch: typeof globalThis.fetch = ticketOnly) {
  const sockets: FakeSocket[] = [];
  const openSocket = (): FakeSocket => {
    const socket = new FakeSocket();
    const live = lives[sockets.push(socket) - 1];
    setImmediate(() => live?.(socket));
    return socket;
  };
  const connection = new Connection({ url: 'localhost', fetch, openSocket });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an attachment needs no more of it
  const attachment = new Attachment(connection, { id: 'e', sandbox_id: 's', tty: false } as Execution);
  const parts: (readonly [stream: string, offset: number])[] = [];
  const ended = (async () => {
    for await (const { stream, offset } of attachment) parts.push([stream, offset]);
    return attachment.end?.status;
  })();
  await tick();
  return { sockets, attachment, parts, ended };
}

test.each<[string, (socket: FakeSocket) => void]>([
  ['is closed when it opens', (socket) => (socket.emit('open'), socket.emit('close'))],
  ['never opens', (socket) => socket.emit('close')],
])('input waits for the next socket if one %s', async (_, closes) => {
  const { sockets, attachment, ended } = await attached([closes, (socket) => socket.emit('open')]);
  await attachment.write('ls\n');
  await attachment.closeInput();
  sockets[1]?.emit('message', '{"input_closed":true}');
  sockets[1]?.emit('message', '{"status":"exited","exit_code":0}');
  sockets[1]?.emit('close');
  expect(await ended).toBe('exited');
  expect(sockets.map(({ sent }) => sent)).toEqual([[], ['ls\n', '{"close_input":true}']]);
});

/** Sends output of both streams, and closes. */
const sendOutput = (socket: FakeSocket): void => {
  socket.emit('open');
  for (const each of ['stdout', 'stderr']) {
    socket.emit('message', JSON.stringify({ stream: each, offset: 4 }));
    socket.emit('message', new ArrayBuffer(3));
  }
  socket.emit('close');
};

const sendMore = (socket: FakeSocket): void => {
  socket.emit('open');
  const messages = ['{"stream":"stderr","offset":7}', new ArrayBuffer(2), new ArrayBuffer(1), '{"status":"exited"}'];
  for (const message of messages) socket.emit('message', message);
  socket.emit('close');
};

test('each part of an output has the offset of its first byte, also after a lost connection', async () => {
  const { parts, ended } = await attached([sendOutput, sendMore]);
  expect(await ended).toBe('exited');
  expect(parts).toEqual([['stdout', 4], ['stderr', 4], ['stderr', 7], ['stderr', 9]]);
});

test.each(['stdout', 'stderr'])('a refusal because output of %s is dropped says so', async (stream) => {
  const probed: string[] = [];
  const fetch = async (input: string | URL | Request): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.includes('/output?')) return await ticketOnly();
    probed.push(url);
    if (new URL(url).searchParams.get('stream') !== stream) return new Response();
    return Response.json({ detail: 'It is gone.', code: 'output_dropped', oldest: 9 }, { status: 410 });
  };
  const { ended } = await attached([sendOutput, (socket) => socket.emit('close')], fetch);
  await expect(ended).rejects.toMatchObject({ code: 'output_dropped', context: { oldest: 9 } });
  expect(probed.at(-1)).toContain('after=7');
});

test('a refusal before any output came is not taken for one because the oldest output is dropped', async () => {
  const { ended } = await attached([
    (socket) => socket.emit('close'),
    (socket) => (socket.emit('open'), socket.emit('message', '{"status":"exited","exit_code":0}'), socket.emit('close')),
  ], async (input) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (!url.pathname.endsWith('/output') || Number(url.searchParams.get('after')) >= 9) return await ticketOnly();
    return Response.json({ detail: 'It is gone.', code: 'output_dropped', oldest: 9 }, { status: 410 });
  });
  expect(await ended).toBe('exited');
});

test('a message that is not JSON fails the iteration', async () => {
  const { sockets, ended } = await attached([(socket) => socket.emit('open')]);
  await tick();
  sockets[0]?.emit('message', 'no JSON');
  await expect(ended).rejects.toThrow(SyntaxError);
});

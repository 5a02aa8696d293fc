import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import express from 'express';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createRouter, type HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { openEventStream } from '../../support/event-stream.ts';
import { until } from '../../support/until.ts';
import { chunk, conversations, logged } from './support.ts';
import { coderSpec, startWorld, type World } from './world.ts';

async function started(server: HttpServerOptions = {}) {
  const world = await startWorld({ server, specs: [coderSpec] });
  // Not over HTTP, since an idle connection may be closed just when the client uses it again.
  const { conversation: { id } } = await world.skep.conversations.start('ann', {
    title: null, sandboxId: null, sandboxSpecId: null, selectedRepository: null, selectedBranch: null, initialMessage: null, permissionPolicy: null, patterns: null,
  });
  await until(() => world.skep.conversations.get('ann', id), ({ conversation }) => conversation.startStatus === 'READY', 60_000);
  return { world, id, path: `${conversations}/${id}/events/stream` };
}

function opened(world: World, path: string): Socket {
  const socket = connect(world.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${world.keys.ann}\r\n\r\n`);
  return socket;
}

const aborted = { route: `${conversations}/{id}/events/stream`, aborted: true };

/** Writes far more than the buffers of the connection hold. All events share one text to save memory. */
async function tellMuch(world: World, id: string): Promise<void> {
  const text = 'x'.repeat(60_000);
  await world.store.events.append(Array.from({ length: 3000 }, () => chunk(id, text)));
}

/** Pauses the client until the server cannot send more, and returns the server's end of the connection. */
async function unreadStream(world: World, socket: Socket): Promise<Socket> {
  socket.pause();
  const end = await until(() => [...world.connections].find(({ remotePort }) => remotePort === socket.localPort), Boolean, 60_000);
  if (end === undefined) throw new Error('no connection');
  await until(() => end.writableLength, (length) => length > 0, 60_000);
  return end;
}

test('a reader that is cut off a hundred times at random points gets each event once, in order', async () => {
  const { world, id, path } = await started();
  const total = 1500;
  let written = 0;
  const writing = (async () => {
    for (; written < total; written += 3) {
      await world.store.events.append([0, 1, 2].map((more) => chunk(id, `${written + more} ${'\u00e4'.repeat((written * 7 + more) % 300)}`)));
      await nextTurn();
    }
  })();
  const seen: number[] = [];
  let lastId: string | null = null;
  const parse = () => createParser({
    onEvent: (event) => {
      lastId = event.id ?? lastId;
      seen.push(Number((JSON.parse(event.data) as { data: { text: string } }).data.text.split(' ')[0]));
    },
  });
  const read = async (bytes: number): Promise<void> => {
    const leaving = new AbortController();
    const late = setTimeout(() => leaving.abort(new Error('nothing came')), 60_000);
    const resume: Record<string, string> = lastId === null ? {} : { 'Last-Event-ID': lastId };
    try {
      const { body } = await fetch(`${world.url}${path}?kinds=message_chunk`, { headers: { 'X-Session-API-Key': world.keys.ann, ...resume }, signal: leaving.signal });
      const [parser, decoder] = [parse(), new TextDecoder()];
      let left = bytes;
      for await (const part of body ?? []) {
        parser.feed(decoder.decode(part.subarray(0, left), { stream: true }));
        left -= part.length;
        if (left <= 0 || seen.length >= total) break;
      }
    } finally {
      clearTimeout(late);
      leaving.abort();
    }
  };
  for (const bytes of fc.sample(fc.integer({ min: 1, max: 5000 }), { numRuns: 100, seed: 7 })) await read(bytes);
  await writing;
  expect(seen.length).toBeLessThan(total);
  await read(Infinity);
  expect(seen).toEqual(Array.from({ length: total }, (_, index) => index));
});

describe('a client that does not read its stream', () => {
  test('is cut off, and its events are not kept in memory', async () => {
    const { world, id, path } = await started({ writeTimeoutMs: 1000 });
    await tellMuch(world, id);
    const end = await unreadStream(world, opened(world, path));
    await logged(world, aborted);
    expect(end.destroyed).toBe(true);
    // The part of the 180 MB that was written to the connection.
    expect(end.bytesWritten).toBeLessThan(20_000_000);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('does not delay the end of the server', async () => {
    const { world, id, path } = await started({ drainMs: 3_600_000, writeTimeoutMs: 3_600_000 });
    await tellMuch(world, id);
    await unreadStream(world, opened(world, path));
    await world.server.close();
    await logged(world, aborted);
  });
});

describe('a stream whose key is revoked', () => {
  test('is cut off, even if its client does not read', async () => {
    const { world, id, path } = await started({ writeTimeoutMs: 3_600_000 });
    await tellMuch(world, id);
    const end = await unreadStream(world, opened(world, path));
    world.auth.revoke(world.keys.ann);
    await until(() => end.destroyed, Boolean, 60_000);
    await logged(world, aborted);
  });

  test('is cut off within a batch of events if its client reads slowly', async () => {
    const { world, id, path } = await started();
    // One batch is far more than a client reads in the seconds after the revocation.
    await world.store.events.append(Array.from({ length: 100 }, () => chunk(id, 'x'.repeat(600_000))));
    const socket = opened(world, path);
    const end = await unreadStream(world, socket);
    socket.on('data', () => void socket.pause());
    const reading = setInterval(() => socket.resume(), 20);
    try {
      world.auth.revoke(world.keys.ann);
      await until(() => end.destroyed, Boolean, 60_000);
      expect(end.bytesWritten).toBeLessThan(40_000_000);
    } finally {
      clearInterval(reading);
    }
  });
});

describe('a stream without events', () => {
  test('sends heartbeats, and is not cut off', async () => {
    const { world, path } = await started({ heartbeatMs: 50, writeTimeoutMs: 200 });
    const socket = opened(world, `${path}?after=latest`);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    await until(() => text.split('\n').filter((line) => line === ':').length, (signs) => signs >= 10, 60_000);
    expect(text).toMatch(/\r\n\r\n[\da-f]+\r\nid: \d+\nretry: 1000\n\n\r\n(3\r\n:\n\n\r\n)+$/);
    expect(socket.closed).toBe(false);
  });

  test('does not read the log after its client has disconnected', async () => {
    const { world, id, path } = await started();
    const [stream, other] = [
      await openEventStream(`${world.url}${path}?after=latest&kinds=message_chunk`, world.keys.ann),
      await openEventStream(`${world.url}${path}?after=latest`, world.keys.ann),
    ];
    const reads = vi.spyOn(world.store.events, 'read');
    const readsOfStream = () => reads.mock.calls.filter(([{ kinds }]) => kinds?.includes('message_chunk'));
    await world.store.events.append([chunk(id, 'one')]);
    for (const each of [stream, other]) expect((await each.next())?.data).toContain('one');
    expect(readsOfStream()).not.toEqual([]);
    stream.cut();
    await logged(world, aborted);
    reads.mockClear();
    await world.store.events.append([chunk(id, 'two')]);
    // A reader that is woken reads before this one, because it was opened earlier.
    expect((await other.next())?.data).toContain('two');
    expect(readsOfStream()).toEqual([]);
    other.cut();
  });

  test('ends at once with its connection when the server is closed', async () => {
    const { world, path } = await started({ drainMs: 3_600_000, keepAliveTimeoutMs: 3_600_000 });
    const stream = await openEventStream(`${world.url}${path}?after=latest`, world.keys.ann);
    expect(stream.response.headers.get('connection')).toBe('close');
    await world.server.close();
    expect(await stream.next()).toBeNull();
  });

  test('ends when Skep is closed, even if the router is mounted in another application', async () => {
    const { world, path } = await started();
    const app = express();
    app.use('/agents', createRouter(world.skep));
    const host = app.listen(0, '127.0.0.1');
    try {
      await once(host, 'listening');
      const stream = await openEventStream(`http://127.0.0.1:${(host.address() as AddressInfo).port}/agents${path}?after=latest`, world.keys.ann);
      await world.skep.close();
      expect(await stream.next()).toBeNull();
    } finally {
      host.close();
      host.closeAllConnections();
    }
  });
});

test('a stream is cut off if the log fails, so its client does not take the failure for the end, and the error is logged', async () => {
  const { world, id, path } = await started();
  const stream = await openEventStream(`${world.url}${path}?after=latest`, world.keys.ann);
  world.faults.events = new Error('the disk is gone');
  await world.store.events.append([chunk(id, 'one')]);
  await expect(stream.next()).rejects.toThrow();
  await logged(world, { ...aborted, code: 'internal' });
  expect(world.lines).toContainEqual(expect.objectContaining({ level: 'error', error: world.faults.events }));
  delete world.faults.events;
});

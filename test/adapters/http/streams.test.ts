import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import express from 'express';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createRouter, type HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { openEventStream } from '../../support/event-stream.ts';
import { until } from '../../support/until.ts';
import { chunk, conversations, logged } from './support.ts';
import { coderSpec, startWorld, type World } from './world.ts';

async function started(server: HttpServerOptions = {}) {
  const world = await startWorld({ server, specs: [coderSpec] });
  // Not by HTTP: a connection that rests may be cut off just when a client takes it again.
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

/** Far more than the buffers on the way hold, at the cost of one text. */
async function tellMuch(world: World, id: string): Promise<void> {
  const text = 'x'.repeat(60_000);
  await world.store.events.append(Array.from({ length: 3000 }, () => chunk(id, text)));
}

/** Lets the client read nothing of its stream; answers with the server's end of the connection. */
async function unreadStream(world: World, socket: Socket): Promise<Socket> {
  socket.pause();
  const end = await until(() => [...world.connections].find(({ remotePort }) => remotePort === socket.localPort), Boolean, 60_000);
  if (end === undefined) throw new Error('no connection');
  await until(() => end.writableLength, (length) => length > 0, 60_000);
  return end;
}

test('a reader that is cut off at random a hundred times sees each event once, in order', async () => {
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

describe('a reader that takes nothing', () => {
  test('costs no memory, and is cut off', async () => {
    const { world, id, path } = await started({ writeTimeoutMs: 1000 });
    await tellMuch(world, id);
    const end = await unreadStream(world, opened(world, path));
    await logged(world, aborted);
    expect(end.destroyed).toBe(true);
    // What was handed to the connection, out of 180 MB.
    expect(end.bytesWritten).toBeLessThan(20_000_000);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('does not hold up the end of the server', async () => {
    const { world, id, path } = await started({ drainMs: 3_600_000, writeTimeoutMs: 3_600_000 });
    await tellMuch(world, id);
    await unreadStream(world, opened(world, path));
    await world.server.close();
    await logged(world, aborted);
  });
});

describe('a stream whose key is revoked', () => {
  test('is broken off although its client reads nothing', async () => {
    const { world, id, path } = await started({ writeTimeoutMs: 3_600_000 });
    await tellMuch(world, id);
    const end = await unreadStream(world, opened(world, path));
    world.auth.revoke(world.keys.ann);
    await until(() => end.destroyed, Boolean, 60_000);
    await logged(world, aborted);
  });

  test('is broken off although its client reads slowly, within a batch of events', async () => {
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

describe('a stream that has nothing to tell', () => {
  test('shows that it lives, and is not cut off', async () => {
    const { world, path } = await started({ heartbeatMs: 50, writeTimeoutMs: 200 });
    const socket = opened(world, `${path}?after=latest`);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    await until(() => text.split('\n').filter((line) => line === ':').length, (signs) => signs >= 10, 60_000);
    expect(text).toMatch(/\r\n\r\n[\da-f]+\r\nid: \d+\nretry: 1000\n\n\r\n(3\r\n:\n\n\r\n)+$/);
    expect(socket.closed).toBe(false);
  });

  test('is followed no more when its client has gone', async () => {
    const { world, id, path } = await started();
    const stream = await openEventStream(`${world.url}${path}?after=latest`, world.keys.ann);
    await world.store.events.append([chunk(id, 'one')]);
    expect((await stream.next())?.data).toContain('one');
    stream.cut();
    await logged(world, aborted);
    let reads = 0;
    Object.defineProperty(world.faults, 'events', { get: () => void (reads += 1) });
    await world.store.events.append([chunk(id, 'two')]);
    await nextTurn();
    expect(reads).toBe(0);
  });

  test('ends at once when the server does, and its connection with it', async () => {
    const { world, path } = await started({ drainMs: 3_600_000, keepAliveTimeoutMs: 3_600_000 });
    const stream = await openEventStream(`${world.url}${path}?after=latest`, world.keys.ann);
    expect(stream.response.headers.get('connection')).toBe('close');
    await world.server.close();
    expect(await stream.next()).toBeNull();
  });

  test('ends when Skep is closed, where the router is mounted in another application too', async () => {
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

test('a log that fails breaks the stream off, so that nobody takes it for the end', async () => {
  const { world, id, path } = await started();
  const stream = await openEventStream(`${world.url}${path}?after=latest`, world.keys.ann);
  world.faults.events = new Error('the disk is gone');
  await world.store.events.append([chunk(id, 'one')]);
  await expect(stream.next()).rejects.toThrow();
  await logged(world, { ...aborted, code: 'internal' });
  delete world.faults.events;
});

import { once } from 'node:events';
import { createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import Docker from 'dockerode';
import { describe, expect, it } from 'vitest';
import { downloadArchive } from '../../../../src/adapters/sandbox-runtime/docker/archive-download.ts';
import { createEngine } from '../../../../src/adapters/sandbox-runtime/docker/engine.ts';

const parts = ['a'.repeat(300), 'b'.repeat(17), 'c'.repeat(70_000)];
const content = parts.join('');
const chunked = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
const head = 'HTTP/1.1 200 OK\r\nX-Docker-Container-Path-Stat: the stat\r\nTransfer-Encoding: chunked\r\n\r\n';
const never = new AbortController().signal;

/** An engine that sends the pieces, each by itself, and closes the connection. */
async function engineThatSends(pieces: readonly string[]) {
  const server = createServer((socket) => {
    void (async () => {
      await once(socket, 'data');
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise(setImmediate);
      }
      socket.end();
    })();
    socket.on('error', () => {});
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  const docker = new Docker({ protocol: 'http', host: '127.0.0.1', port: typeof address === 'object' ? address?.port ?? 0 : 0 });
  const engine = createEngine({ docker, deployment: 'test', callTimeoutMs: 5_000, closed: never });
  return { engine, [Symbol.dispose]: () => void server.close() };
}

function cutAfter(text: string, lengths: readonly number[]): string[] {
  const ends = [...lengths, text.length];
  return ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end)).filter((piece) => piece !== '');
}

describe('a download of an archive', () => {
  it('is whole wherever the answer is cut, as a stream and as lent chunks', async () => {
    const all = `${head}${chunked}0\r\n\r\n`;
    for (let at = 1; at < head.length + 340; at += 3) {
      using one = await engineThatSends(cutAfter(all, [at, at + 1]));
      const { headers, tar } = await downloadArchive(one.engine, 'c', '/p', never);
      expect(headers['x-docker-container-path-stat']).toBe('the stat');
      if (at % 2 === 0) {
        expect((await buffer(tar)).toString()).toBe(content);
        continue;
      }
      let lent = '';
      for await (const chunk of tar.lent()) lent += Buffer.from(chunk).toString();
      expect(lent).toBe(content);
    }
  });

  it('fails if the engine breaks off, and as its signal does', async () => {
    using broken = await engineThatSends([head, chunked]);
    const { tar } = await downloadArchive(broken.engine, 'c', '/p', never);
    await expect(buffer(tar)).rejects.toThrow('broke off');
    using headless = await engineThatSends([head.slice(0, 20)]);
    await expect(downloadArchive(headless.engine, 'c', '/p', never)).rejects.toMatchObject({ code: 'runtime_unavailable' });
    const leaving = new AbortController();
    using whole = await engineThatSends([head, chunked]);
    const left = await downloadArchive(whole.engine, 'c', '/p', leaving.signal);
    leaving.abort(new Error('nobody wants it'));
    await expect(buffer(left.tar)).rejects.toThrow('nobody wants it');
    await expect(left.tar.lent().next()).rejects.toThrow('nobody wants it');
  });

  it('rejects with the status and the message of the engine', async () => {
    const body = JSON.stringify({ message: 'no such path' });
    using missing = await engineThatSends([`HTTP/1.1 404 Not Found\r\nContent-Length: ${body.length}\r\n\r\n`, body]);
    await expect(downloadArchive(missing.engine, 'c', '/p', never)).rejects.toMatchObject({ statusCode: 404, json: { message: 'no such path' } });
  });
});

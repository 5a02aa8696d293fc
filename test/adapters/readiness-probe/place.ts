import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { PlaceAnswer } from '../../contracts/readiness-probe.ts';

/** A port of this machine whose answers can be changed. It records the requests. */
export interface Place {
  readonly url: string;
  readonly requests: readonly string[];
  readonly answer: (answer: PlaceAnswer) => Promise<void>;
  readonly asked: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export async function createPlace(): Promise<Place> {
  const requests: string[] = [];
  const sockets = new Set<{ destroy(): unknown }>();
  let answer: PlaceAnswer = null;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    socket.once('data', (data) => {
      requests.push(data.toString('latin1').split('\r\n')[0] ?? '');
      if (typeof answer !== 'number') return;
      // The probe must not follow this location.
      socket.end(`HTTP/1.1 ${answer} Whatever\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    });
  });
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
  // Below the ports that the system assigns, so no other program gets this port while it is closed.
  const port = randomInt(20_000, 32_768);
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async answer(next) {
      answer = next;
      if (next === null) await close();
      else if (!server.listening) await once(server.listen(port, '127.0.0.1'), 'listening');
    },
    async asked() {
      if (server.listening) await once(server, 'connection');
    },
    close,
  };
}

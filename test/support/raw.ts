import { createConnection, type Socket } from 'node:net';

/** Opens a TCP connection for raw bytes. `text` returns the data received until now. */
export function rawSocket(url: string): { readonly socket: Socket; text(): string } {
  const { hostname, port } = new URL(url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return { socket, text: () => text };
}

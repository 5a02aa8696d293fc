import { createConnection, type Socket } from 'node:net';
import type { Answer } from './client.ts';

/** A connection on which the test writes byte by byte, and what came back so far. */
export function rawSocket(url: string): { readonly socket: Socket; text(): string } {
  const { hostname, port } = new URL(url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return { socket, text: () => text };
}

/** Sends the path as it is, which a client that tidies up would not. */
export async function rawly(url: string, key: string, method: string, path: string): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.end(`${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${key}\r\nConnection: close\r\n\r\n`);
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const headers = new Headers(head.split('\r\n').slice(1).map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]));
  return { status: Number(head.split(' ')[1]), headers, body: JSON.parse(body) as unknown };
}

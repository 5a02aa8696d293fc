/** Runs in a sandbox of the default spec. Serves its files to requests with the sandbox's key. Imports nothing from Skep. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join, sep } from 'node:path';

const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
const key = hash(process.env['SESSION_API_KEY'] ?? '');
const root = process.cwd();

async function serve({ url = '/', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(url, 'http://localhost');
  if (pathname === '/health') return answer(response, 200, 'ok\n');
  if (!timingSafeEqual(hash(String(headers['x-session-api-key'] ?? '')), key)) {
    return answer(response, 401, 'Send the key of the sandbox in X-Session-API-Key.\n');
  }
  const path = await realpath(join(root, decodeURIComponent(pathname)));
  if (path !== root && !path.startsWith(root + sep)) return notFound(response);
  const found = await stat(path);
  if (found.isDirectory()) {
    const entries = await readdir(path, { withFileTypes: true });
    return answer(response, 200, entries.map((entry) => `${entry.name}${entry.isDirectory() ? '/' : ''}\n`).join(''));
  }
  if (!found.isFile()) return notFound(response);
  createReadStream(path).on('error', () => response.destroy()).pipe(response);
}

function notFound(response: ServerResponse): void {
  answer(response, 404, 'There is no such file.\n');
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' }).end(body);
}

createServer((request, response) => {
  serve(request, response).catch(() => notFound(response));
}).listen(Number(process.env['SKEP_PORT_8000']), '127.0.0.1');

import { spawn } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';

export interface BackendAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Answers a request with the CGI program `git http-backend`. */
export async function runBackend(root: string, request: IncomingMessage, asked: URL, body: Buffer): Promise<BackendAnswer> {
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_COUNT: '2',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_CONFIG_KEY_1: 'http.receivepack',
      GIT_CONFIG_VALUE_1: 'true',
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REQUEST_METHOD: request.method,
      PATH_INFO: decodeURIComponent(asked.pathname),
      QUERY_STRING: asked.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      CONTENT_LENGTH: String(body.length),
      REMOTE_ADDR: '127.0.0.1',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => undefined).end(body);
  const output = await buffer(child.stdout);
  const end = output.indexOf('\r\n\r\n');
  const lines = output.toString('latin1', 0, end).split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]));
  const { status = '200', ...others } = headers;
  return { status: Number.parseInt(status, 10), headers: others, body: output.subarray(end + 4) };
}

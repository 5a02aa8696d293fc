import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createTinyImage, manifestType, type Blob, type TinyImage } from './image.ts';

export interface RegistryOptions {
  /** Whether a login is required. */
  readonly auth?: 'none' | 'basic' | 'bearer';
}

/** A container registry with one image, `team/app:1`. Its only login is `ann`, `secret`. */
export interface Registry {
  readonly host: string;
  readonly image: string;
  /** The requests as `METHOD path`, in order. */
  readonly requests: readonly string[];
  /** From now on, downloads of the layer do not finish. */
  stall(): void;
  close(): Promise<void>;
}

const login = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
const token = 'the-token';

export async function startRegistry({ auth = 'none' }: RegistryOptions = {}): Promise<Registry> {
  const image = await createTinyImage();
  const requests: string[] = [];
  let stalled = false;
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const url = new URL(request.url ?? '/', 'http://registry');
    if (url.pathname === '/token') return answerToken(request, response);
    if (!isLoggedIn(request)) return challenge(response);
    return serve(url.pathname, request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  function isLoggedIn({ headers: { authorization } }: IncomingMessage): boolean {
    return auth === 'none' || authorization === (auth === 'basic' ? login : `Bearer ${token}`);
  }
  function challenge(response: ServerResponse): void {
    const how = auth === 'basic' ? 'Basic realm="registry"' : `Bearer realm="http://${host}/token",service="registry",scope="repository:team/app:pull"`;
    response.writeHead(401, { 'www-authenticate': how, 'content-type': 'application/json' });
    response.end(JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: 'authentication required' }] }));
  }
  function serve(path: string, request: IncomingMessage, response: ServerResponse): void {
    if (path === '/v2/') return void response.writeHead(200).end('{}');
    const found = find(image, path);
    if (found === null) {
      response.writeHead(404, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify({ errors: [{ code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' }] }));
    }
    const type = found === image.manifest ? manifestType : 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'content-length': found.bytes.length, 'docker-content-digest': found.digest });
    if (request.method === 'HEAD') return void response.end();
    if (stalled && found === image.layer) return void response.write(found.bytes.subarray(0, found.bytes.length / 2));
    response.end(found.bytes);
  }

  return {
    host,
    image: `${host}/team/app:1`,
    requests,
    stall: () => void (stalled = true),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function answerToken(request: IncomingMessage, response: ServerResponse): void {
  const known = request.headers.authorization === login;
  response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' });
  response.end(JSON.stringify(known ? { token, access_token: token } : { errors: [{ code: 'UNAUTHORIZED', message: 'incorrect username or password' }] }));
}

function find(image: TinyImage, path: string): Blob | null {
  const [, kind, reference] = /^\/v2\/team\/app\/(manifests|blobs)\/(.+)$/.exec(path) ?? [];
  if (kind === 'manifests') return reference === '1' || reference === image.manifest.digest ? image.manifest : null;
  return [image.config, image.layer].find(({ digest }) => kind === 'blobs' && digest === reference) ?? null;
}

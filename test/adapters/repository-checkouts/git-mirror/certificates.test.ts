import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { promisify } from 'node:util';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createScene, failureOf, open, temporaryFolder } from './support.ts';

const run = promisify(execFile);

/** Serves the scene's host by HTTPS, with a certificate that only this process trusts. Returns the origin. */
async function startTls(target: string): Promise<string> {
  const folder = await temporaryFolder();
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  await run('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=Own',
    '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert]);
  const server = createServer({ key: await readFile(key), cert: await readFile(cert) }, (asked, response) => {
    const { method, headers, url } = asked;
    const passed = request(`${target}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    asked.pipe(passed);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const before = getCACertificates('default');
  onTestFinished(() => setDefaultCACertificates(before));
  setDefaultCACertificates([...before, await readFile(cert, 'utf8')]);
  // Node has read the variable long ago.
  vi.stubEnv('NODE_EXTRA_CA_CERTS', cert);
  vi.stubEnv('GIT_SSL_CAINFO', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens nowhere');
  return `https://localhost:${address.port}`;
}

test('git trusts the certificates of NODE_EXTRA_CA_CERTS, unless it has its own', async () => {
  const scene = await createScene();
  const { remote } = scene.request;
  const request = { ...scene.request, remote: { ...remote, url: `${await startTls(scene.host.url)}/acme/shop.git` } };
  expect((await open(scene.mirror(), request)).branch).toBe('main');
  vi.stubEnv('GIT_SSL_CAINFO', '/etc/ssl/certs/ca-certificates.crt');
  const other = scene.mirror({ root: join(await temporaryFolder(), 'mirrors') });
  expect(await failureOf(open(other, request))).toContain('certificate_untrusted');
});

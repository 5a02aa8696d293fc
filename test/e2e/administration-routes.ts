import { expect } from 'vitest';
import { type Answer, type Client, createClient, items, object } from '../support/client.ts';
import { runSkep, type Server } from '../support/server.ts';

type Ask = (
  method: string, template: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>, client?: Client,
) => Promise<Answer>;

/** Calls every operation for keys, logins and administration. */
export async function callEachOfAdministration(ask: Ask, server: Server): Promise<void> {
  const { url, dataDir } = server;
  const { stdout } = server.output();
  const caller = { user_id: 'default', key_name: 'SKEP_API_KEY', access: 'full', repositories: null, has_keys: true };
  expect((await ask('GET', '/api/v1/me', '/api/v1/me')).body).toEqual(caller);
  expect((await ask('GET', '/api/v1/events/ticket', '/api/v1/events/ticket')).status).toBe(200);
  // Whoever reads a log must not log in.
  expect(stdout).toContain('For a link that logs in');
  expect(stdout).not.toContain('#/login/');
  const printed = await runSkep(['dashboard', '--json'], { SKEP_DATA_DIR: dataDir, SKEP_PUBLIC_URL: url });
  const { url: link } = JSON.parse(printed.stdout) as { readonly url: string };
  const login = await ask('POST', '/api/v1/login', '/api/v1/login', { code: link.split('#/login/')[1] }, {}, createClient(url, null));
  expect(object(login)).toMatchObject({ access: 'admin', user_id: 'default' });
  const admin = createClient(url, String(object(login)['key']));
  const call = async (method: string, template: string, path = template, body?: unknown) => ask(method, template, path, body, {}, admin);

  const made = object(await call('POST', '/api/v1/keys', undefined, { name: 'ci', access: 'read' }));
  expect(items(await call('GET', '/api/v1/keys')).map(({ id }) => id)).toContain(made['id']);
  expect((await call('DELETE', '/api/v1/keys/{key}', `/api/v1/keys/${String(made['id'])}`)).status).toBe(204);
  expect(object(await call('GET', '/api/v1/overview'))).toMatchObject({ sandboxes: expect.any(Object), conversations: expect.any(Object) });
  expect((await call('GET', '/metrics')).status).toBe(200);
  expect(items(await call('GET', '/api/v1/settings')).map(({ variable }) => variable)).toContain('SKEP_API_KEY');
}

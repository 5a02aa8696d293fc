import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createRepository } from '../contracts/git-repository.ts';
import { createClient, items, object, type Answer, type Client } from '../support/client.ts';
import { removeFolder, startServer, temporaryFolder } from '../support/server.ts';
import { until } from '../support/until.ts';

type Ask = (method: string, template: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>, client?: Client) => Promise<Answer>;

/** Calls the routes of changes on a separate server with a repository that accepts pushes. */
export async function callEachOfChanges(ask: Ask): Promise<void> {
  const folder = await temporaryFolder();
  await createRepository(join(folder, 'acme/shop.git'), { commits: [{ id: 'first', at: 1_600_000_000, files: [['README.md', 'tea\n']] }] });
  const key = 'a-static-key-for-the-changes';
  const server = await startServer({ env: { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: folder } });
  try {
    const client = createClient(server.url, key);
    const conversations = '/api/v1/app-conversations';
    const call = (method: string, below: string, path: string, body?: unknown): Promise<Answer> =>
      ask(method, `${conversations}/{id}${below}`, path, body, undefined, client);
    const path = `${conversations}/${String(object(await client('POST', conversations, { selected_repository: 'acme/shop' }))['id'])}`;
    const { sandbox_id: sandboxId } = await until(async () => object(await client('GET', path)), ({ start_status: status }) => status === 'READY');
    await writeFile(join(server.dataDir, 'sandboxes', String(sandboxId), 'workspace/new.txt'), 'new\n');
    expect(object(await call('GET', '/changes', `${path}/changes`))).toMatchObject({ start_branch: 'main', commits: [], files: [{ path: 'new.txt', status: 'added' }] });
    expect((await call('GET', '/changes', `${path}/changes?format=patch`)).body).toContain('+new\n');
    expect(object(await call('POST', '/publish', `${path}/publish`, {}))).toEqual({ branch: `skep/${path.split('/').at(-1)}`, commit: expect.any(String), complete: true, pull_request: null });
    const repositories = '/api/v1/repositories';
    expect((await ask('GET', `${repositories}/search`, `${repositories}/search?query=SHOP`, undefined, undefined, client)).body).toEqual({
      items: [{ name: 'acme/shop', path: 'acme/shop', git_provider: 'local' }], next_page_id: null, failures: [],
    });
    const branches = await ask('GET', `${repositories}/{repository_name}/branches`, `${repositories}/acme%2Fshop/branches`, undefined, undefined, client);
    expect(items(branches)).toMatchObject([{ name: 'main', is_default: true }, { name: expect.stringMatching(/^skep\//), is_default: false }]);
    const refused = object(await call('POST', '/publish', `${path}/publish`, { pull_request: { title: 'New' } }));
    expect(refused).toMatchObject({ status: 409, code: 'pull_requests_unsupported', provider: 'local' });
    expect(object(await call('POST', '/publish', `${path}/publish`, { branch: 'main' }))).toMatchObject({ status: 409, code: 'conversation_publish_refused' });
  } finally {
    await server.close();
    await removeFolder(folder);
  }
}

/** Reads the transcript of a conversation without messages, and archives it. */
export async function callEachOfHistory(id: string, ask: Ask): Promise<void> {
  const template = '/api/v1/app-conversations/{id}';
  const path = `/api/v1/app-conversations/${id}`;
  const read = async (query: string) => (await ask('GET', `${template}/transcript`, `${path}/transcript${query}`)).body;
  expect(await read('')).toBe('# Fix the bug\n');
  expect(await read('?format=json')).toEqual({ items: [] });
  const archived = await ask('PATCH', template, path, { title: 'Kept', archived: true });
  expect(object(archived)).toMatchObject({ title: 'Kept', archived_at: expect.any(String), sandbox_status: 'MISSING' });
  expect(await read('')).toBe('# Kept\n');
}

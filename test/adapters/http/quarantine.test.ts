import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newQuarantinedSandbox, quarantineOwner } from '../../../src/domain/quarantine.ts';
import { unlimited } from '../../../src/domain/admission-limits.ts';
import { sandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import { items } from '../../support/client.ts';
import { createWorld, plainSpec, type World } from './world.ts';

let world: World;
beforeAll(async () => void (world = await createWorld()));
afterAll(() => world.close());

/** Puts a stopped sandbox of the runtime into quarantine. */
async function put(id: string, ownerId?: string): Promise<void> {
  const launch = { id, spec: sandboxSpec(plainSpec), sessionApiKey: `key-of-${id}` };
  world.engine.start(ownerId === undefined ? launch : { ...launch, ownerId });
  world.engine.stop(id);
  const facts = { keptForMs: 86_400_000, specId: 'plain', ownerId: ownerId ?? null };
  const stranger = newQuarantinedSandbox({ id, sessionApiKey: 'another', now: Date.now() }, facts);
  await world.store.sandboxes.insert({ ...stranger, status: 'PAUSED' }, unlimited);
}

const adopt = (id: string): string => `/api/v1/sandboxes/${id}/adopt`;

describe('a sandbox in quarantine', () => {
  test('is visible only to administrators, with its known owner and spec, and can be deleted by them', async () => {
    await put('sb-seen', 'ben');
    const admin = world.client(world.keys.admin);
    expect(items(await admin('GET', '/api/v1/sandboxes/search'))).toMatchObject([{
      id: 'sb-seen', created_by_user_id: quarantineOwner, status: 'PAUSED', status_detail: expect.stringContaining('its owner ben'),
      status_reason: { code: 'quarantined', kept_for_ms: 86_400_000, spec_id: 'plain', owner_id: 'ben' },
    }]);
    expect(items(await world.ann('GET', '/api/v1/sandboxes/search'))).toEqual([]);
    expect((await admin('DELETE', '/api/v1/sandboxes/sb-seen')).status).toBe(204);
    expect(world.engine.inspect('sb-seen').state).toBe('absent');
  });

  test('can be given back to its owner, who resumes it', async () => {
    await put('sb-back', 'ben');
    const admin = world.client(world.keys.admin);
    expect(await admin('POST', '/api/v1/sandboxes/sb-back/resume')).toMatchObject({ status: 409, body: { code: 'sandbox_in_quarantine', sandbox_id: 'sb-back' } });
    expect(await admin('POST', adopt('sb-back'), {})).toMatchObject({
      status: 200, body: { id: 'sb-back', created_by_user_id: 'ben', sandbox_spec_id: 'plain', status: 'PAUSED', status_reason: { code: 'adopted' } },
    });
    const ben = world.client(world.keys.ben);
    expect(await ben('POST', '/api/v1/sandboxes/sb-back/resume')).toMatchObject({ status: 200, body: { status: 'RUNNING' } });
    expect(await admin('POST', adopt('sb-back'), {})).toMatchObject({ status: 422, body: { detail: [{ loc: ['path', 'id'], type: 'not_in_quarantine' }] } });
  });

  test('can be adopted only with a known or given owner and an existing spec', async () => {
    await put('sb-pooled');
    const admin = world.client(world.keys.admin);
    expect(await admin('POST', adopt('sb-pooled'), {})).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'user_id'], type: 'not_known_to_runtime' }] } });
    expect(await admin('POST', adopt('sb-pooled'), { user_id: 'cyd', sandbox_spec_id: 'no-such' }))
      .toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'sandbox_spec_id'] }] } });
    expect(await admin('POST', adopt('sb-pooled'), { user_id: 'cyd' })).toMatchObject({ body: { created_by_user_id: 'cyd' } });
  });

  test('can be adopted only by an administrator', async () => {
    await put('sb-shut', 'ann');
    expect(await world.ann('POST', adopt('sb-shut'), {})).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(await world.client(world.keys.reader)('POST', adopt('sb-shut'), {})).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(await world.store.sandboxes.find('sb-shut')).toMatchObject({ ownerId: quarantineOwner });
  });
});

test('a sandbox cannot be given to an invalid user id', async () => {
  await put('sb-kept', 'ann');
  const admin = world.client(world.keys.admin);
  for (const user of ['skep:quarantine', 'a\u0000b', 'a\nb', ' ', 'x'.repeat(101)]) {
    const refused = await admin('POST', '/api/v1/sandboxes/sb-kept/adopt', { user_id: user });
    expect(refused).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', 'user_id'] }] } });
  }
});

test('a key with the user id of the quarantine gives no access: it is an error of the Auth adapter, which the log names', async () => {
  await put('sb-secret', 'ann');
  const stranger = world.client(world.auth.issue({ userId: 'skep:quarantine', keyName: 'q', access: 'full' }));
  expect(await stranger('GET', '/api/v1/sandboxes/sb-secret')).toMatchObject({ status: 500, body: { code: 'internal' } });
  expect(await stranger('POST', '/api/v1/sandboxes/sb-secret/adopt', { user_id: 'ann' })).toMatchObject({ status: 500, body: { code: 'internal' } });
  expect(await world.store.sandboxes.find('sb-secret')).toMatchObject({ ownerId: quarantineOwner });
  expect(world.lines.find(({ level }) => level === 'error')).toMatchObject({ error: new Error('the key "q" has a reserved or invalid user id') });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { createWorld, plainSpec, startWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('sandbox specs', () => {
  test('have the start of the deployment as their creation time, not the first request', async () => {
    const other = await startWorld();
    const opened = Date.now();
    await until(() => Date.now(), (now) => now > opened + 1);
    const [spec] = items(await other.ann('GET', '/api/v1/sandbox-specs'));
    expect(Date.parse(String(spec?.['created_at']))).toBeLessThanOrEqual(opened);
  });

  test('do not contain their command for a read-only key', async () => {
    const [spec] = items(await world.client(world.keys.reader)('GET', '/api/v1/sandbox-specs'));
    expect(spec).toMatchObject({ id: 'plain', command: null });
  });

  test('contain the secrets of their environment only masked', async () => {
    const { body } = await world.ann('GET', '/api/v1/sandbox-specs/search');
    expect(body).toEqual({
      items: [
        {
          id: 'plain',
          description: null,
          image: null,
          command: ['run', '--all'],
          working_dir: '/workspace',
          initial_env: { CI: '1', GIT_TOKEN: '**********' },
          ports: [{ name: 'AGENT_SERVER', port: 8000, public: false }],
          wake_on_access: 'none',
          rest: { freeze_after_seconds: null, stop_after_seconds: null, delete_after_seconds: null, max_life_seconds: null },
          agent: null,
          allowed_secrets: [],
          resources: { cpus: 2, memory_bytes: 2_147_483_648, pids: 512 },
          created_at: expect.stringMatching(timestamp),
        },
      ],
      next_page_id: null,
    });
  });
});

test('a sandbox fails with the name of a missing secret, and no response or log contains the value of a secret', async () => {
  const name = 'SECRET_OF_THIS_TEST';
  const other = await startWorld({ specs: [{ ...plainSpec, secrets: [name] }] });
  const start = async (wanted: string) => {
    const { id } = object(await other.ann('POST', '/api/v1/sandboxes'));
    return await until(async () => object(await other.ann('GET', `/api/v1/sandboxes/${String(id)}`)), ({ status }) => status === wanted);
  };
  try {
    expect(await start('ERROR')).toMatchObject({ status_reason: { code: 'sandbox_secrets_missing', names: [name] }, status_detail: expect.stringContaining(name) });
    process.env[name] = 'the-value-that-nobody-sees';
    await start('RUNNING');
    for (const path of ['/api/v1/sandboxes', '/api/v1/sandbox-specs', '/api/v1/events']) {
      expect(JSON.stringify((await other.ann('GET', path)).body)).not.toContain('the-value-that-nobody-sees');
    }
    expect(JSON.stringify(other.lines)).not.toContain('the-value-that-nobody-sees');
  } finally {
    delete process.env[name];
  }
});

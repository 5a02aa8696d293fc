import { describe, expect, test } from 'vitest';
import type { SandboxParameters } from '../../src/domain/sandbox-parameters.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { calm, createWorld } from './world.ts';

const rest = { freezeAfterMs: 20_000, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: 90_000 };
const warm = sandboxSpec({ id: 'warm', initialEnv: { CI: '1' }, allowedSecrets: ['NPM_TOKEN'], pool: { size: 1 }, rest });
const secrets = { NPM_TOKEN: 'a-token-of-npm' };

async function filled() {
  const world = createWorld({ specs: [warm], secrets });
  const skep = world.boot();
  await skep.sweeper.start();
  await calm();
  const start = (parameters: SandboxParameters) => skep.sandboxes.start('me', { specId: 'warm', parameters });
  return { ...world, ...skep, start };
}

describe('a start', () => {
  test.each<[string, SandboxParameters]>([
    ['nothing', {}],
    ['metadata and a time limit', { metadata: { task: '7' }, timeoutMs: 60_000 }],
    ['a variable with the value of the spec', { env: { CI: '1' } }],
  ])('that asks for %s gets a pool member', async (_, parameters) => {
    const { start } = await filled();
    expect(await start(parameters)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'claimed_from_pool' }, metadata: parameters.metadata ?? {} });
  });

  test('with variables or secrets starts cold, and has them after a stop, also in another process', async () => {
    const { start, engine, sandboxes, store, boot, shutdown } = await filled();
    const { id, status } = await start({ env: { LEVEL: '2' }, secrets: ['NPM_TOKEN'] });
    expect(status).toBe('STARTING');
    await calm();
    const expected = { spec: { id: 'warm', initialEnv: { CI: '1', LEVEL: '2' } }, secrets };
    expect(engine.launchOf(id)).toMatchObject(expected);
    await sandboxes.pause('me', id, 'stop');
    await shutdown();
    const next = boot([sandboxSpec({ id: 'warm' })]);
    await next.sweeper.start();
    expect(await next.sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(engine.launchOf(id)).toMatchObject(expected);
    expect(JSON.stringify([await store.sandboxes.find(id), await store.events.read({ ownerId: 'me' }, 0, 100)])).not.toContain(secrets.NPM_TOKEN);
  });

  test('with a time limit is deleted when the time is over, even after activity and a restart', async () => {
    const { start, sandboxes, engine, clock, store, shutdown, boot } = await filled();
    const { id, instanceId } = await start({ timeoutMs: 15_000 });
    clock.advance(10_000);
    await calm();
    await sandboxes.resume('me', id);
    await shutdown();
    const next = boot();
    await next.sweeper.start();
    clock.advance(4_999);
    await calm();
    expect(await next.sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    clock.advance(1);
    await calm();
    expect(await store.sandboxes.find(id)).toMatchObject({ deletedAt: clock.now(), statusReason: { code: 'life_over', afterMs: 15_000 } });
    expect(engine.inspect(instanceId).state).toBe('absent');
    const told = (await store.events.read({ ownerId: 'me' }, 0, 100)).find(({ data }) => 'to' in data && data.to === null);
    expect(told).toMatchObject({ sandboxId: id, actor: 'skep', reason: { code: 'life_over' } });
  });

  test.each<[string, SandboxParameters, string]>([
    ['a longer life', { timeoutMs: 90_001 }, 'timeout_above_spec'],
    ['a secret that the spec does not name', { secrets: ['SKEP_API_KEY'] }, 'secrets_not_allowed'],
    ['a variable that Skep sets', { env: { SKEP_SANDBOX_ID: 'x' } }, 'env_reserved'],
    ['resources if the runtime limits none', { resources: { cpus: 1 } }, 'resources_not_limited'],
  ])('that asks for %s is refused, and nothing is written', async (_, parameters, code) => {
    const { start, sandboxes, pool, writes } = await filled();
    const before = writes.length;
    await expect(start(parameters)).rejects.toMatchObject({ code: 'invalid_request', context: { problems: [{ reason: { code } }] } });
    expect(writes).toHaveLength(before);
    expect((await sandboxes.search('me', {}, { after: null, limit: 10 })).items).toEqual([]);
    await pool.close();
  });
});

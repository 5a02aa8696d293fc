import { afterAll, afterEach, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

const idle = shell('exec sleep 100000');

describeWithDocker('The networks of Docker sandboxes', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  const networks = async (): Promise<string[]> =>
    (await engine.docker.listNetworks({ filters: { label: [`skep.deployment=${engine.deployment}`] } })).map(({ Name }) => Name).toSorted();
  const networkOf = async (id: string): Promise<readonly string[]> =>
    Object.keys((await engine.container(id).inspect()).NetworkSettings.Networks);

  test('are created once by concurrent starts, and again if they are gone', async () => {
    const name = `skep_${engine.deployment}_isolated`;
    const launches = Array.from({ length: 4 }, () => launchOf(idle));
    const found = await Promise.all(launches.map((launch) => engine.open().start(launch, () => {}, neverAborts)));
    for (const observed of found) expect(observed).toMatchObject({ state: 'running', reason: null });
    expect(await networks()).toEqual([name]);

    const runtime = engine.open();
    const [stopped] = launches;
    if (stopped === undefined) throw new Error('none was started');
    await Promise.all(launches.map(({ id }) => runtime.stop(id)));
    await engine.docker.getNetwork(name).remove();
    expect(await runtime.resume(stopped, neverAborts)).toMatchObject({ state: 'running', exposedUrls: [{ name: 'WEB' }] });
    expect(await networks()).toEqual([name]);
    expect(await engine.ask(stopped.id, 'ip route get 169.254.169.254 | head -n 1')).toMatch(/^local /);

    // A runtime that has not noticed that it is gone.
    await runtime.stop(stopped.id);
    await engine.clear();
    const unaware = engine.open();
    const first = launchOf(idle);
    expect(await unaware.start(first, () => {}, neverAborts)).toMatchObject({ state: 'running' });
    await unaware.remove(first.id);
    await engine.docker.getNetwork(name).remove();
    expect(await unaware.start(launchOf(idle), () => {}, neverAborts)).toMatchObject({ state: 'running', reason: null });
    expect(await networks()).toEqual([name]);
  });

  test('are extended by a second network if the first is full', async () => {
    const full = `skep_${engine.deployment}_shared`;
    // Room for the gateway and one container.
    const subnet = { IPAM: { Driver: 'default', Config: [{ Subnet: '10.213.77.0/30' }] } };
    await engine.docker.createNetwork({ Name: full, Labels: { 'skep.deployment': engine.deployment }, ...subnet });
    const runtime = engine.open();
    const { isolation } = launchOf(idle).spec;
    const shared = { isolation: { ...isolation, network: 'shared' as const } };
    const [one, other, third] = [launchOf(idle, shared), launchOf(idle, shared), launchOf(idle, shared)];
    for (const launch of [one, other, third])
      expect(await runtime.start(launch, () => {}, neverAborts)).toMatchObject({
        state: 'running',
        reason: null,
        exposedUrls: [{ name: 'WEB' }],
      });
    expect(await networkOf(one.id)).toEqual([full]);
    expect(await networkOf(other.id)).toEqual([`${full}_2`]);
    expect(await networkOf(third.id)).toEqual([`${full}_2`]);
    expect(await engine.ask(other.id, 'ip route get 169.254.169.254 | head -n 1')).toMatch(/^local /);

    await runtime.stop(one.id);
    const fourth = launchOf(idle, shared);
    await engine.open().start(fourth, () => {}, neverAborts);
    expect(await networkOf(fourth.id)).toEqual([full]);
    expect(await runtime.resume(one, neverAborts)).toMatchObject({ state: 'running', reason: null });
    expect(await networkOf(one.id)).toEqual([`${full}_2`]);
  });

  test('are removed when the last runtime without sandboxes is closed', async () => {
    const [staying, going] = [launchOf(idle), launchOf(idle)];
    const [one, other] = [engine.open(), engine.open()];
    await one.start(staying, () => {}, neverAborts);
    await one.start(going, () => {}, neverAborts);
    await one.remove(going.id);
    await one.close();
    expect((await other.inspect(staying.id)).state).toBe('running');
    expect(await networks()).toContain(`skep_${engine.deployment}_isolated`);
    await other.remove(staying.id);
    await other.close();
    expect(await networks()).toEqual([]);
  });

  test('are not used if they belong to someone else', async () => {
    const taken = createEngine();
    const network = await taken.docker.createNetwork({ Name: `skep_${taken.deployment}_isolated` });
    try {
      expect(await taken.open().start(launchOf(idle), () => {}, neverAborts)).toMatchObject({
        state: 'absent',
        reason: { message: expect.stringMatching(/not Skep's; remove it/) },
      });
    } finally {
      await taken.clear();
      await network.remove();
    }
  });
});

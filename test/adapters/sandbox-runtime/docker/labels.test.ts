import type { ContainerInspectInfo } from 'dockerode';
import { expect, test } from 'vitest';
import { containerConfig, keptLaunch } from '../../../../src/adapters/sandbox-runtime/docker/start-container.ts';
import { sandboxSpec } from '../../../../src/domain/sandbox-spec.ts';

const spec = sandboxSpec({ id: 'plain', image: 'debian', labels: { team: 'shop', 'skep.owner': 'made up' } });
const plan = { deployment: 'main', image: 'debian', network: 'none', publishAddress: '127.0.0.1' };

const found = (owner: string) => ({ Config: { Labels: { 'skep.owner': owner }, Env: [] } }) as unknown as ContainerInspectInfo;

test('a container has a label with its owner, which is empty for a pool member, also if its image was made from a sandbox', () => {
  const launch = { id: 'sb-1', spec, sessionApiKey: 'a secret' };
  const owned = containerConfig({ ...plan, launch: { ...launch, ownerId: 'ann' } }).Labels;
  const own = { 'skep.deployment': 'main', 'skep.sandbox': 'sb-1', 'skep.spec': 'plain', 'skep.owner': 'ann', 'skep.ports': '[]' };
  expect(owned).toEqual({ team: 'shop', ...own });
  expect(containerConfig({ ...plan, launch }).Labels).toHaveProperty(['skep.owner'], '');
  expect([found('ann'), found('')].map((one) => keptLaunch(one)?.ownerId)).toEqual(['ann', null]);
});

import { expect, test } from 'vitest';
import { containerConfig } from '../../../../src/adapters/sandbox-runtime/docker/start-container.ts';
import { sandboxSpec } from '../../../../src/domain/sandbox-spec.ts';

const spec = sandboxSpec({ id: 'plain', image: 'debian', labels: { team: 'shop', 'skep.owner': 'made up' } });
const plan = { deployment: 'main', image: 'debian', network: 'none', publishAddress: '127.0.0.1' };

test('a container has a label with its owner, unless it is a pool member', () => {
  const launch = { id: 'sb-1', spec, sessionApiKey: 'a secret' };
  const owned = containerConfig({ ...plan, launch: { ...launch, ownerId: 'ann' } }).Labels;
  const own = { 'skep.deployment': 'main', 'skep.sandbox': 'sb-1', 'skep.spec': 'plain', 'skep.owner': 'ann', 'skep.ports': '[]' };
  expect(owned).toEqual({ team: 'shop', ...own });
  expect(containerConfig({ ...plan, launch }).Labels).not.toHaveProperty(['skep.owner']);
});

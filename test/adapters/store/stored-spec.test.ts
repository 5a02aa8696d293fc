import { expect, test } from 'vitest';
import { readSpec } from '../../../src/adapters/store/stored-spec.ts';
import { defaultAgentTimes } from '../../../src/domain/agent.ts';
import { defaultIsolation, sandboxSpec } from '../../../src/domain/sandbox-spec.ts';

const agent = {
  protocol: 'acp', command: ['agent'], env: {}, secrets: [], permissions: 'ask', authMethod: null, startWithinMs: 1, turnTimeoutMs: 2,
  permissionTimeoutMs: 3,
} as const;

function stored(spec: object): string {
  return JSON.stringify({ ...sandboxSpec({ id: 'node' }), ...spec });
}

test('a present spec is read as it was written, and a repeated text is the same object', () => {
  const spec = sandboxSpec({ id: 'node', runtimeOptions: { docker: { seccomp: 'unconfined' } }, agent });
  const text = JSON.stringify(spec);
  expect(readSpec(text)).toStrictEqual(spec);
  expect(readSpec(text)).toBe(readSpec(text));
});

test('settings of Docker that an older version kept in `isolation` are below `runtimeOptions`', () => {
  const isolation = { ...defaultIsolation, user: 'node', capabilities: ['CHOWN'], newPrivileges: true, seccomp: 'unconfined', ociRuntime: null };
  const spec = readSpec(stored({ isolation, runtimeOptions: undefined }));
  expect(spec.isolation).toStrictEqual({ ...defaultIsolation, user: 'node' });
  expect(spec.runtimeOptions).toStrictEqual({ docker: { capabilities: ['CHOWN'], new_privileges: true, seccomp: 'unconfined' } });
});

test('an agent of an older version gets the default time limits', () => {
  const { turnTimeoutMs, permissionTimeoutMs } = defaultAgentTimes;
  const older = { ...agent, turnTimeoutMs: undefined, permissionTimeoutMs: undefined };
  expect(readSpec(stored({ agent: older })).agent).toStrictEqual({ ...agent, turnTimeoutMs, permissionTimeoutMs });
});

test.each(['', '{', 'null', '7'])('a text that is no object is refused: %j', (text) => {
  expect(() => readSpec(text)).toThrow();
});

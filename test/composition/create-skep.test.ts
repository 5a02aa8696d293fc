import { expect, test } from 'vitest';
import { createSkep, type SkepOptions } from '../../src/composition/index.ts';

/** What a caller without types may hand over. */
const untyped = (options: unknown): SkepOptions => options as SkepOptions;

test.each([
  [{ git: [{ provider: 'svn' }] }, 'the option git names "svn"; it takes github, gitlab or local'],
  [{ git: ['github'] }, 'the option git names "github"'],
  [{ runtime: { kind: 'podman' } }, 'the option runtime names "podman"; it takes docker or process'],
  [{ store: { kind: 'redis' } }, 'the option store names "redis"; it takes sqlite or memory'],
])('createSkep(%j) says what the option takes', async (options, message) => {
  await expect(createSkep(untyped(options))).rejects.toThrow(message);
});

test('a docker runtime over a store of the caller’s own needs a name that lasts', async () => {
  const { createInMemoryStore } = await import('../../src/adapters/store/sqlite/index.ts');
  await expect(createSkep({ runtime: { kind: 'docker' }, store: createInMemoryStore() })).rejects.toThrow("runtime: { kind: 'docker', deployment: 'a-name' }");
});

test('what was opened before a part that can not be opened is closed again, and the first error is the one told', async () => {
  await expect(createSkep(untyped({ runtime: { kind: 'podman' }, store: { kind: 'memory' } }))).rejects.toThrow(TypeError);
});

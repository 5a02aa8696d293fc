import { afterEach, expect, onTestFinished, test } from 'vitest';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { ContainerModule, createSkep, provide, type SkepOptions, tokens } from '../../src/composition/index.ts';
import { createMemoryGitProvider, createMemoryRuntime, MemoryEngine } from '../doubles/memory/index.ts';

const runtime = () => createMemoryRuntime(new MemoryEngine());
const gitOf = (name: string, close: () => Promise<void>) => ({ ...createMemoryGitProvider({ hosts: [], repositories: [] }), name, close });

const fail = (): never => {
  throw new Error('no token');
};
const failingModule = (factory: () => never | Promise<never>) =>
  new ContainerModule(({ bind }) => provide(bind, tokens.gitProvider, {}, factory));

/** The errors that would end the embedding process. */
const uncaught: unknown[] = [];
const note = (error: unknown): void => void uncaught.push(error);
process.on('unhandledRejection', note);
afterEach(() => expect(uncaught.splice(0)).toEqual([]));

async function failureOf(options: SkepOptions): Promise<unknown> {
  return await createSkep(options).then(async (skep) => await skep.close(), (error: unknown) => error);
}

/** Lets the process report rejections that nobody handles. */
const reported = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

test.each([['throws', fail], ['rejects', async () => fail()]])('a factory of a module that %s makes createSkep fail, and nothing else', async (_, factory) => {
  for (const git of [[{ provider: 'local' as const }], [() => gitOf('own', async () => {})], [async () => fail()]]) {
    expect(await failureOf({ runtime, git, modules: [failingModule(factory)] })).toMatchObject({ message: 'no token' });
    await reported();
  }
});

test('an adapter is closed when a slow factory returns it after another factory has failed', async () => {
  const closed = Promise.withResolvers<void>();
  const slow = Promise.withResolvers<void>();
  const git = [
    async () => {
      await slow.promise;
      return gitOf('slow', async () => closed.resolve());
    },
    async () => fail(),
  ];
  expect(await failureOf({ runtime, git })).toMatchObject({ message: 'no token' });
  slow.resolve();
  await closed.promise;
});

test("a module's late services are closed in reverse order, and an error of one of them ends nothing", async () => {
  const closed: string[] = [];
  const done = Promise.withResolvers<void>();
  const slow = Promise.withResolvers<void>();
  const late = new ContainerModule(({ bind }) => {
    provide(bind, tokens.gitProvider, { closers: tokens.closers }, async ({ closers }) => {
      await slow.promise;
      closers.defer(() => done.resolve());
      closers.use({ [Symbol.asyncDispose]: async () => void closed.push('first') });
      closers.adopt('second', (name) => void closed.push(name));
      closers.defer(fail);
      return gitOf('late', async () => {});
    });
  });
  expect(await failureOf({ runtime, modules: [late, failingModule(fail)] })).toMatchObject({ message: 'no token' });
  slow.resolve();
  await done.promise;
  expect(closed).toEqual(['second', 'first']);
  await reported();
});

test('what a factory adds to the closers while the deployment is open is closed with it', async () => {
  const closed: string[] = [];
  let connect: () => void = fail;
  const mine = new ContainerModule(({ rebind }) => provide(rebind, tokens.store, { closers: tokens.closers }, ({ closers }) => {
    connect = () => closers.defer(() => void closed.push('connection'));
    return createInMemoryStore();
  }));
  const skep = await createSkep({ runtime, modules: [mine] });
  onTestFinished(async () => await skep.close());
  connect();
  expect(closed).toEqual([]);
  await skep.close();
  expect(closed).toEqual(['connection']);
});

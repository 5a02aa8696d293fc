import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { ConfigError, ContainerModule, createSkep, provide, provideValue, type SkepOptions, type Token, token, tokens } from '../../src/composition/index.ts';
import type { AdapterDeps } from '../../src/composition/skep-options.ts';
import {
  createManualClock, createMemoryAgentProtocol, createMemoryAuth, createMemoryCheckouts, createMemoryGitProvider, createMemoryProbe,
  createMemoryRuntime, createSeededRandom, MemoryEngine,
} from '../doubles/memory/index.ts';
import { doublesModule, type Doubles } from '../support/doubles-module.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const repository = (path: string) => ({ path, defaultBranch: 'main', files: [{ path: '.skep/microagents/style.md', createdAt: 1 }] });
const gitOf = (name: string, path: string) => ({ ...createMemoryGitProvider({ hosts: [`${name}.example`], repositories: [repository(path)] }), name });

async function open(options: SkepOptions) {
  const skep = await createSkep(options);
  onTestFinished(async () => await skep.close());
  return skep;
}

/** The adapter, which records its name when it is closed. */
function noting<T extends { close(): Promise<void> }>(adapter: T, name: string, closed: string[]): T {
  return Object.assign(adapter, {
    close: async () => {
      closed.push(name);
    },
  });
}

describe('a module', () => {
  test('replaces the binding of any port', async () => {
    const clock = createManualClock();
    const ports = {
      clock, random: createSeededRandom(1), logger: silent, store: createInMemoryStore(), runtime: createMemoryRuntime(new MemoryEngine()),
      probe: createMemoryProbe(), auth: createMemoryAuth(clock), checkouts: createMemoryCheckouts(), secrets: { get: () => null },
      gitProvider: [gitOf('mine', 'acme/shop')], agentProtocol: [createMemoryAgentProtocol({})],
    } satisfies Doubles;
    const seen: Record<string, unknown> = {};
    const look = new ContainerModule(({ bind, onActivation }) => {
      for (const [name, { id }] of Object.entries(tokens)) {
        onActivation(id, (_, service) => {
          seen[name] = service;
          return service;
        });
      }
      provideValue(bind, token<string>('of my own'), 'anything');
    });
    const skep = await open({ modules: [doublesModule(ports), look] });
    expect(skep).toMatchObject({ clock, random: ports.random, logger: silent, auth: ports.auth });
    for (const [name, port] of Object.entries<unknown>(ports)) expect(seen[name], name).toBe(Array.isArray(port) ? port[0] : port);
    expect((await skep.microagents.list('acme/shop', null)).map(({ name }) => name)).toEqual(['style']);
  });

  test('can give the log of events to the runtime', async () => {
    const mine = new ContainerModule(({ rebind }) => provide(rebind, tokens.runtime, { events: tokens.events }, () => createMemoryRuntime(new MemoryEngine())));
    expect((await open({ modules: [mine] })).parts.map(({ adapter }) => adapter)).toContain('memory');
  });

  test('adds a git provider after those of the options', async () => {
    const add = new ContainerModule(({ bind }) => provide(bind, tokens.gitProvider, {}, async () => gitOf('second', 'acme/other')));
    const skep = await open({ git: [gitOf('first', 'acme/shop')], modules: [add] });
    expect((await skep.check()).filter(({ part }) => part === 'git').map(({ adapter }) => adapter)).toEqual(['first', 'second']);
    expect(await skep.microagents.list('acme/shop', null)).toHaveLength(1);
    expect(await skep.microagents.list('second.example/acme/other', null)).toHaveLength(1);
  });

  test.each([
    [['git.example', 'Git.example'], 'git provider second: has the host "Git.example", which is not a host in lower case'],
    [['https://git.example/'], 'git provider second: has the host "https://git.example/", which is not a host'],
    [['first.example'], 'git provider second: has the host "first.example", which the git provider first has already'],
  ])('is refused with a git provider of the hosts %j, like an option', async (hosts, problem) => {
    const [first, second] = [gitOf('first', 'acme/shop'), { ...gitOf('second', 'acme/other'), hosts }];
    const add = new ContainerModule(({ bind }) => provideValue(bind, tokens.gitProvider, second));
    for (const options of [{ git: [first], modules: [add] }, { git: [first, second] }]) await expect(createSkep(options)).rejects.toThrow(problem);
  });

  test.each(Object.entries({
    git: [tokens.gitProvider, 'listFiles, name'], runtime: [tokens.runtime, 'inspect, name'], store: [tokens.store, 'sandboxes, name'],
    auth: [tokens.auth, 'authenticate'], probe: [tokens.probe, 'untilReady'], checkouts: [tokens.checkouts, 'checkOut, name'],
    protocols: [tokens.agentProtocol, 'open, name'], secrets: [tokens.secrets, 'get'], clock: [tokens.clock, 'now, after'],
    random: [tokens.random, 'id, secret'], logger: [tokens.logger, 'debug, info'],
  } satisfies Record<string, readonly [object, string]>))('is refused if its %s lacks a method or is nothing', async (option, [target, missing]) => {
    const isOneOfMany = target === tokens.gitProvider || target === tokens.agentProtocol;
    const withAdapter = (adapter: unknown) => new ContainerModule(({ bind, rebind }) =>
      provide<unknown, object>(isOneOfMany ? bind : rebind, target as Token<unknown>, {}, () => adapter));
    for (const [adapter, problem] of [[{ description: '' }, `is an adapter without ${missing}`], [undefined, 'is nothing instead of an adapter']] as const) {
      const failure = await createSkep({ modules: [withAdapter(adapter)] }).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(ConfigError);
      expect(String(failure)).toContain(`${option}: ${problem}`);
    }
  });

  test('can be asynchronous, and overrides earlier modules', async () => {
    const [first, second] = [createManualClock(), createManualClock()];
    const late = new ContainerModule(async ({ rebindAsync }) => {
      (await rebindAsync(tokens.clock.id)).toConstantValue(second);
    });
    expect((await open({ modules: [doublesModule({ clock: first }), late] })).clock).toBe(second);
  });

  test('closes what it makes by adding it to the closers, and not by the close method of the adapter', async () => {
    const closed: string[] = [];
    const mine = new ContainerModule(({ rebind }) => {
      provide(rebind, tokens.checkouts, { closers: tokens.closers }, ({ closers }) => {
        closers.defer(() => void closed.push('by the closers'));
        return noting(createMemoryCheckouts(), 'by itself', closed);
      });
    });
    await (await createSkep({ modules: [mine] })).close();
    expect(closed).toEqual(['by the closers']);
  });
});

describe('an adapter in the options', () => {
  test('can be a factory, which gets the parts of the deployment that it needs', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'skep-modules-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true }));
    const clock = createManualClock();
    const store = createInMemoryStore();
    const given: AdapterDeps[] = [];
    const note = <T>(adapter: T) => (deps: AdapterDeps): T => {
      given.push(deps);
      return adapter;
    };
    const skep = await open({
      product: 'hive', dataDir, clock: ({ product }) => (product === 'hive' ? clock : createManualClock()), logger: async () => silent,
      random: () => createSeededRandom(1), store: (deps) => (deps.logger === silent ? store : createInMemoryStore()),
      git: [note(gitOf('mine', 'acme/shop'))], runtime: note(createMemoryRuntime(new MemoryEngine())), checkouts: note(createMemoryCheckouts()),
      auth: note(createMemoryAuth(clock)), probe: note(createMemoryProbe()), protocols: [note(createMemoryAgentProtocol({}))],
      secrets: note({ get: () => null }),
    });
    expect(given).toHaveLength(7);
    const [first] = given;
    for (const deps of given) {
      expect(deps).toMatchObject({ product: 'hive', dataDir, clock, logger: silent, random: skep.random, listingCache: store.listingCache });
      expect(deps.deploymentId()).toBe(first?.deploymentId());
    }
    expect(first?.deploymentId()).toMatch(/^[a-z0-9]{12}$/);
  });

  test('is closed in reverse order if a factory made it, and is not closed if it was passed ready-made', async () => {
    const closed: string[] = [];
    const skep = await createSkep({
      store: () => noting(createInMemoryStore(), 'store', closed),
      git: [() => noting(gitOf('a', 'acme/a'), 'git of a factory', closed), noting(gitOf('b', 'acme/b'), 'ready-made git', closed)],
      runtime: noting(createMemoryRuntime(new MemoryEngine()), 'ready-made runtime', closed),
      checkouts: async () => noting(createMemoryCheckouts(), 'checkouts', closed),
    });
    await skep.close();
    await skep.close();
    expect(closed).toEqual(['checkouts', 'git of a factory', 'store']);
  });

  test('makes the start fail if its events cannot be subscribed to, and the others are closed', async () => {
    const closed: string[] = [];
    const runtime = { ...createMemoryRuntime(new MemoryEngine()), subscribe: () => {
      throw new Error('no events');
    } };
    await expect(createSkep({ runtime, store: () => noting(createInMemoryStore(), 'store', closed) })).rejects.toThrow('no events');
    expect(closed).toEqual(['store']);
  });

  test('is closed if a later one cannot be opened, and createSkep throws that error', async () => {
    const closed: string[] = [];
    await expect(createSkep({
      store: () => noting(createInMemoryStore(), 'store', closed),
      git: [noting(gitOf('b', 'acme/b'), 'ready-made git', closed)],
      runtime: async () => await Promise.reject(new Error('no engine')),
    })).rejects.toThrow('no engine');
    expect(closed).toEqual(['store']);
  });
});

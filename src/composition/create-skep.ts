import 'reflect-metadata';
import { Container } from 'inversify';
import type { PartCheck, Skep } from '../application/skep.ts';
import type { GitProvider } from '../ports/git-provider.ts';
import type { RepositoryCheckouts } from '../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Store } from '../ports/store.ts';
import type { SkepOptions } from './options.ts';
import { adaptersModule } from './wiring/adapters.ts';
import { conversationsModule } from './wiring/conversations.ts';
import { provideValue } from './wiring/provide.ts';
import { sandboxesModule } from './wiring/sandboxes.ts';
import type { Token } from './wiring/token.ts';
import { tokens } from './wiring/tokens.ts';
import { upkeepModule } from './wiring/upkeep.ts';

/**
 * Makes a deployment of Skep, brings records and facts together once, and goes on doing so until it is closed. Only the
 * adapters that the options choose are loaded. Where a part can't be opened, those opened before are closed again.
 */
export async function createSkep(options: SkepOptions = {}): Promise<Skep> {
  await using opening = new AsyncDisposableStack();
  const container = new Container();
  provideValue(container.bind.bind(container), tokens.options, options);
  provideValue(container.bind.bind(container), tokens.closers, opening);
  container.load(adaptersModule, sandboxesModule, conversationsModule, upkeepModule);
  const get = <T>(token: Token<T>): Promise<T> => container.getAsync<T>(token.id);

  const [store, git, runtime] = [await get(tokens.store), await get(tokens.gitProviders), await get(tokens.runtime)];
  const checkouts = await get(tokens.checkouts);
  const skep = {
    microagents: await get(tokens.microagents),
    sandboxes: await get(tokens.sandboxes),
    conversations: await get(tokens.conversations),
    events: await get(tokens.events),
    specs: await get(tokens.specs),
    auth: await get(tokens.auth),
    clock: await get(tokens.clock),
    random: await get(tokens.random),
    logger: await get(tokens.logger),
    check: () => checkAll({ git, store, runtime, checkouts }),
  };
  const reconciler = await get(tokens.sweeper);
  await reconciler.start();
  await get(tokens.purging);

  const closers = opening.move();
  let closed: Promise<void> | null = null;
  return { ...skep, close: () => (closed ??= closers.disposeAsync()) };
}

interface Checked {
  readonly git: readonly GitProvider[];
  readonly store: Store;
  readonly runtime: SandboxRuntime;
  readonly checkouts: RepositoryCheckouts;
}

async function checkAll({ git, store, runtime, checkouts }: Checked): Promise<readonly PartCheck[]> {
  const parts = [
    { part: 'store', adapter: store },
    { part: 'runtime', adapter: runtime },
    ...git.map((provider) => ({ part: 'git', adapter: provider })),
    { part: 'checkout', adapter: checkouts },
  ];
  return await Promise.all(parts.map(async ({ part, adapter }) => ({ part, adapter: adapter.name, ...(await adapter.check()) })));
}

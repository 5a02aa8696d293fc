import 'reflect-metadata';
import { Container } from 'inversify';
import { type Component, type ComponentCheck, shuttingDown, type Skep } from '../application/skep.ts';
import { defaultProduct } from '../domain/microagent.ts';
import { ensureDeploymentFile, newDeploymentId, newSecret } from './config/deployment-file.ts';
import { whyNodeIsTooOld } from './node-version.ts';
import type { CheckedOptions, Deployment, SkepOptions, SpecOptions } from './skep-options.ts';
import { adaptersModule } from './wiring/adapters-module.ts';
import { checkHosts, checkMembers } from './wiring/custom-adapters.ts';
import { defaultSpecs } from './wiring/default-specs.ts';
import { all, provideValue, type Token, tokens } from './wiring/tokens.ts';
import { conversationsModule, deploymentModule, rulesOf, sandboxesModule, upkeepModule } from './wiring/use-case-modules.ts';

/** Returns a container with all bindings. It creates services only on request; the stack closes them. */
export function createContainer(options: CheckedOptions, closers: AsyncDisposableStack): Container {
  const container = new Container();
  const bind = container.bind.bind(container);
  provideValue(bind, tokens.closers, closers);
  provideValue(bind, tokens.deployment, deploymentOf(options));
  provideValue(bind, tokens.rules, rulesOf(options));
  provideValue(bind, tokens.specList, options.specs ?? defaultSpecs(options));
  container.load(adaptersModule(options), sandboxesModule, conversationsModule, upkeepModule, deploymentModule);
  return container;
}

export async function resolve<T>(container: Container, { id, isMultiple }: Token<T>): Promise<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `all` gives such a token the type of the list
  return isMultiple === true ? ((await container.getAllAsync(id)) as T) : await container.getAsync<T>(id);
}

function deploymentOf({ product = defaultProduct, dataDir }: CheckedOptions): Deployment {
  let id: string | undefined;
  return {
    product,
    dataDir: dataDir ?? null,
    deploymentId: () => (id ??= dataDir === undefined ? newDeploymentId() : ensureDeploymentFile(dataDir).id),
  };
}

/**
 * Opens a deployment of Skep and reconciles all sandboxes until it is closed. Loads only the adapters that the options choose. If a part
 * can't be opened, closes the parts that are open already, and each part that opens later. Throws a `ConfigError` if an option is wrong.
 * `close` closes everything that `createSkep` or a factory in the options created, in reverse order. It does not close ready-made adapters.
 */
export async function createSkep(options: SkepOptions = {}): Promise<Skep> {
  const tooOld = whyNodeIsTooOld();
  if (tooOld !== null) throw new Error(`Skep ${tooOld}`);
  const { checkOptions } = await import('./skep-options.ts');
  return await openSkep(checkOptions(options));
}

export async function openSkep(options: CheckedOptions): Promise<Skep> {
  // Its class needs the stack of a newer Node than those that can load this file.
  const { Closers } = await import('./wiring/closers.ts');
  await using opening = new AsyncDisposableStack();
  const closers = opening.use(new Closers());
  const container = createContainer(options, closers);
  await container.loadAsync(...(options.modules ?? []));
  // After the modules, because `rebind` also removes what is called at an activation.
  checkMembers(container);
  const get = async <T>(token: Token<T>): Promise<T> => await resolve(container, token);

  const parts = await partsOf(get);
  const skep = {
    microagents: await get(tokens.microagents),
    repositories: await get(tokens.repositories),
    sandboxes: await get(tokens.sandboxes),
    executions: await get(tokens.executions),
    files: await get(tokens.files),
    conversations: await get(tokens.conversations),
    events: await get(tokens.events),
    specs: await get(tokens.specs),
    keys: await get(tokens.keys),
    overview: await get(tokens.overview),
    auth: await get(tokens.auth),
    clock: await get(tokens.clock),
    random: await get(tokens.random),
    logger: await get(tokens.logger),
    secret: options.dataDir === undefined ? newSecret() : ensureDeploymentFile(options.dataDir).secret,
    parts,
    check: async () => await Promise.all(parts.map(async (each): Promise<ComponentCheck> => ({
      part: each.part, adapter: each.adapter, ...(await each.check()),
    }))),
  };
  await skep.specs.recordDates();
  // Does not wait for the first sweep, because an engine that hangs must not delay the start.
  void (await get(tokens.sweeper)).start();

  // Nothing has failed, so the closers stay open until `close`.
  opening.move();
  const closing = new AbortController();
  let closed: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing.abort(shuttingDown);
    return (closed ??= closers.disposeAsync());
  };
  return { ...skep, closing: closing.signal, close };
}

/** Opens the adapters that can be checked, in the order of the report. */
async function partsOf(get: <T>(token: Token<T>) => Promise<T>): Promise<readonly Component[]> {
  const store = await get(tokens.store);
  const git = await get(all(tokens.gitProvider));
  const runtime = await get(tokens.runtime);
  checkHosts(git);
  const checkouts = await get(tokens.checkouts);
  const hosts = git.map((provider) => ['git', provider] as const);
  const named = [['store', store], ['runtime', runtime], ...hosts, ['checkout', checkouts]] as const;
  return named.map(([part, adapter]) => ({ part, adapter: adapter.name, check: async () => await adapter.check() }));
}

/** Returns the options for `createSkep` that the server would use, without those of the server alone. Throws a `ConfigError`. */
export async function loadConfig(file: string, env: NodeJS.ProcessEnv = process.env): Promise<SkepOptions> {
  const [{ readConfigFile }, { readConfig }, { chooseRuntime }] = await Promise.all([
    import('./config/config-file.ts'), import('./config/read-config.ts'), import('./config/runtime-choice.ts'),
  ]);
  const config = readConfig({ ...env, SKEP_CONFIG: file });
  const { specs } = readConfigFile(file).keys;
  const { options: runtime } = await chooseRuntime(config);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the configuration with these specs was found right above
  return { ...config.options, runtime, specs: specs as SpecOptions[] };
}

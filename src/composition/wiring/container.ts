import 'reflect-metadata';
import { Container } from 'inversify';
import { defaultProduct } from '../../domain/microagent.ts';
import { sandboxSpec } from '../../domain/sandbox-spec.ts';
import { ensureDeploymentFile, newDeploymentId } from '../config/deployment-file.ts';
import type { Deployment, SkepOptions } from '../options.ts';
import { adaptersModule } from './adapters.ts';
import { defaultSpecs } from './default-specs.ts';
import { rulesOf } from './rules.ts';
import { provideValue, type Token, tokens } from './tokens.ts';
import { conversationsModule, sandboxesModule, upkeepModule } from './use-cases.ts';

/** Returns a container in which everything is bound and nothing is made yet. What it makes is closed by the stack. */
export function createContainer(options: SkepOptions, closers: AsyncDisposableStack): Container {
  const container = new Container();
  const bind = container.bind.bind(container);
  provideValue(bind, tokens.closers, closers);
  provideValue(bind, tokens.deployment, deploymentOf(options));
  provideValue(bind, tokens.rules, rulesOf(options));
  provideValue(bind, tokens.specList, (options.specs ?? defaultSpecs(options)).map(sandboxSpec));
  container.load(adaptersModule(options), sandboxesModule, conversationsModule, upkeepModule);
  return container;
}

/** Returns the service of the token, or the list of services if the token is of all. */
export async function resolve<T>(container: Container, { id, isMultiple }: Token<T>): Promise<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `all` gives such a token the type of the list
  return isMultiple === true ? ((await container.getAllAsync(id)) as T) : await container.getAsync<T>(id);
}

function deploymentOf({ product = defaultProduct, dataDir }: SkepOptions): Deployment {
  let id: string | undefined;
  return {
    product,
    dataDir: dataDir ?? null,
    deploymentId: () => (id ??= dataDir === undefined ? newDeploymentId() : ensureDeploymentFile(dataDir).id),
  };
}

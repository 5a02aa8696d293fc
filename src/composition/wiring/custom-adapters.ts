import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bind } from 'inversify';
import type { AgentProtocol } from '../../ports/agent-protocol.ts';
import type { Auth } from '../../ports/auth.ts';
import type { Clock } from '../../ports/clock.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Secrets } from '../../ports/secrets.ts';
import type { Store } from '../../ports/store.ts';
import { ConfigError } from '../config/config-error.ts';
import type { AdapterDeps, Own } from '../skep-options.ts';
import { provide, type Token, tokens } from './tokens.ts';

export interface OwnAdapters {
  readonly git: GitProvider;
  readonly runtime: SandboxRuntime;
  readonly store: Store;
  readonly auth: Auth;
  readonly probe: ReadinessProbe;
  readonly checkouts: RepositoryCheckouts;
  readonly protocols: AgentProtocol;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}
export type OwnOption = keyof OwnAdapters;

/** The members by which an adapter is recognised. None of Skep's own choices has them. */
const members: { readonly [O in OwnOption]: readonly (keyof OwnAdapters[O] & string)[] } = {
  git: ['listFiles'],
  runtime: ['inspect'],
  store: ['sandboxes'],
  auth: ['authenticate'],
  probe: ['untilReady'],
  checkouts: ['checkOut'],
  protocols: ['open'],
  secrets: ['get'],
  clock: ['now', 'after'],
  random: ['id', 'secret'],
  logger: ['debug', 'info', 'warn', 'error'],
};

export function ownForm(option: OwnOption): string {
  return `an object with ${members[option].join(', ')}, or a function that returns one`;
}

function isAdapter(given: unknown, option: OwnOption): boolean {
  return typeof given === 'object' && given !== null && members[option].every((member) => member in given);
}

/** Whether the option is an adapter, or a function, which is taken for a factory of one, and no choice among Skep's own. */
export function isOwn<O extends OwnOption, Deps = AdapterDeps>(given: unknown, option: O): given is Own<OwnAdapters[O], Deps> {
  return typeof given === 'function' || isAdapter(given, option);
}

/** Throws a {@link ConfigError} if the function is no factory (`logger: console.log`). `name` is that of the option. */
export function provideOwn<O extends OwnOption, D>(
  bind: Bind, target: Token<OwnAdapters[O]>, deps: Token<D>, given: Own<OwnAdapters[O], D>, option: O, name: string = option,
): void {
  provide(bind, target, [deps, tokens.closers], async (deps, closers) => {
    if (!isFactory(given)) return given;
    const adapter = await given(deps);
    if (!isAdapter(adapter, option)) {
      throw new ConfigError([{ name, problem: `is a function that returned ${kindOf(adapter)}`, form: ownForm(option) }]);
    }
    if (isClosable(adapter)) closers.defer(() => adapter.close());
    return adapter;
  });
}

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  return typeof value === 'object' ? 'another object' : `a ${typeof value}`;
}

function isFactory<T, D>(given: Own<T, D>): given is (deps: D) => T | Promise<T> {
  return typeof given === 'function';
}

function isClosable(adapter: unknown): adapter is { close(): Promise<void> | void } {
  return typeof adapter === 'object' && adapter !== null && 'close' in adapter && typeof adapter.close === 'function';
}

export async function temporaryFolder(name: string, closers: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `skep-${name}-`));
  return closers.adopt(folder, () => rm(folder, { recursive: true, force: true }));
}

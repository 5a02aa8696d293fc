import type { Bind } from 'inversify';
import { defaultProtocol } from '../../domain/agent.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Mistake } from '../config/config-mistakes.ts';
import type { AdapterDeps, Own, SkepOptions } from '../skep-options.ts';
import { provide, type ServiceOf, type Token, tokens } from './tokens.ts';

/** The options that accept an adapter, with its tokens. */
const ports = {
  git: tokens.gitProvider,
  runtime: tokens.runtime,
  store: tokens.store,
  auth: tokens.auth,
  probe: tokens.probe,
  checkouts: tokens.checkouts,
  protocols: tokens.agentProtocol,
  secrets: tokens.secrets,
  clock: tokens.clock,
  random: tokens.random,
  logger: tokens.logger,
};
export type OwnAdapters = { readonly [O in keyof typeof ports]: ServiceOf<(typeof ports)[O]> };
type OwnOption = keyof OwnAdapters;
const portOf: { readonly [O in OwnOption]: Token<OwnAdapters[O]> } = ports;

/** The members that identify an adapter. Skep's own choices do not have them. */
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

export function customForm(option: OwnOption): string {
  return `an object with ${members[option].join(', ')}, or a function that returns one`;
}

export function isObjectWith(given: unknown, names: readonly string[]): given is object {
  return typeof given === 'object' && given !== null && names.every((name) => name in given);
}

function isAdapter<O extends OwnOption>(given: unknown, option: O): given is OwnAdapters[O] {
  return isObjectWith(given, members[option]);
}

const gitMembers = ['name', 'family', 'hosts', 'listFiles', 'readFile', 'find', 'remote', 'check', 'close'] as const;

/** Returns the mistakes in ready-made git providers: missing members of the port, and names that are taken. */
export function gitMistakesIn(given: unknown): Mistake[] {
  const names = new Map<unknown, number>();
  return (Array.isArray(given) ? given : []).flatMap((provider: unknown, index): Mistake[] => {
    if (!isAdapter(provider, 'git')) return [];
    const missing = gitMembers.filter((name) => !isObjectWith(provider, [name]));
    if (missing.length > 0) return [{ path: ['git', index], problem: `is a git provider without ${missing.join(', ')}` }];
    const { name } = provider;
    const first = names.get(name);
    names.set(name, first ?? index);
    if (first === undefined) return [];
    return [{ path: ['git', index], problem: `has the name ${JSON.stringify(name)}, which git[${first}] has already` }];
  });
}

/** Returns true if the option is an adapter or a function, which counts as a factory, and not one of Skep's own choices. */
export function isCustomAdapter<O extends OwnOption, Deps = AdapterDeps>(given: unknown, option: O): given is Own<OwnAdapters[O], Deps> {
  return typeof given === 'function' || isAdapter(given, option);
}

/** Binds the adapter of an option. Throws a {@link ConfigError} if the function does not return an adapter (`logger: console.log`). */
export function provideCustom<O extends OwnOption, D>(
  bind: Bind, option: O, deps: Token<D>, given: Own<OwnAdapters[O], D>, name: string = option,
): void {
  provide<OwnAdapters[O], [D, AsyncDisposableStack]>(bind, portOf[option], [deps, tokens.closers], async (deps, closers) => {
    if (!isFactory(given)) return given;
    const adapter = await given(deps);
    if (!isAdapter(adapter, option)) {
      throw new ConfigError([{ name, problem: `is a function that returned ${kindOf(adapter)}`, form: customForm(option) }]);
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

/** Returns the names of the protocols; null if a factory or a module gives one. */
export function protocolNames({ protocols, modules }: Pick<SkepOptions, 'protocols' | 'modules'>): readonly string[] | null {
  if (modules !== undefined) return null;
  const names = protocols?.map((protocol) => (typeof protocol === 'function' ? null : protocol.name)) ?? [defaultProtocol];
  return names.every((name) => name !== null) ? names : null;
}

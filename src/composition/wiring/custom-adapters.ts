import type { Bind } from 'inversify';
import { defaultProtocol } from '../../domain/agent.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Mistake } from '../config/config-mistakes.ts';
import type { AdapterDeps, Own, SkepOptions } from '../skep-options.ts';
import { provide, type ServiceOf, type Token, tokens } from './tokens.ts';

const port = <T>(token: Token<T>, ...members: readonly (keyof T & string)[]) => ({ token, members });

/** The options that accept an adapter: its token, and the members that identify it. Skep's own choices do not have them. */
const ports = {
  git: port(tokens.gitProvider, 'listFiles'),
  runtime: port(tokens.runtime, 'inspect'),
  store: port(tokens.store, 'sandboxes'),
  auth: port(tokens.auth, 'authenticate'),
  probe: port(tokens.probe, 'untilReady'),
  checkouts: port(tokens.checkouts, 'checkOut'),
  protocols: port(tokens.agentProtocol, 'open'),
  secrets: port(tokens.secrets, 'get'),
  clock: port(tokens.clock, 'now', 'after'),
  random: port(tokens.random, 'id', 'secret'),
  logger: port(tokens.logger, 'debug', 'info', 'warn', 'error'),
};
export type OwnAdapters = { readonly [O in keyof typeof ports]: ServiceOf<(typeof ports)[O]['token']> };
type OwnOption = keyof OwnAdapters;
const portOf: { readonly [O in OwnOption]: { readonly token: Token<OwnAdapters[O]>; readonly members: readonly string[] } } = ports;

export function customForm(option: OwnOption): string {
  return `an object with ${portOf[option].members.join(', ')}, or a function that returns one`;
}

export function isObjectWith(given: unknown, names: readonly string[]): given is object {
  return typeof given === 'object' && given !== null && names.every((name) => name in given);
}

function isAdapter<O extends OwnOption>(given: unknown, option: O): given is OwnAdapters[O] {
  return isObjectWith(given, portOf[option].members);
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
  provide<OwnAdapters[O], [D, AsyncDisposableStack]>(bind, portOf[option].token, [deps, tokens.closers], async (deps, closers) => {
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

import type { Bind, Container } from 'inversify';
import { defaultProtocol } from '../../domain/agent.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import { ConfigError } from '../config/config-error.ts';
import type { FieldProblem } from '../config/field-problems.ts';
import type { AdapterDeps, Own, SkepOptions } from '../skep-options.ts';
import { provide, type ServiceOf, type Token, tokens } from './tokens.ts';

const port = <T>(token: Token<T>, ...members: readonly (keyof T & string)[]) => ({ token, members });

/**
 * The options that accept an adapter: its token, and the required members of the port. The first member identifies an adapter, because
 * Skep's own choices do not have it.
 */
const ports = {
  git: port(tokens.gitProvider, 'listFiles', 'name', 'family', 'hosts', 'readFile', 'find', 'remote', 'check', 'close'),
  runtime: port(
    tokens.runtime, 'inspect', 'name', 'ignores', 'capabilities', 'executions', 'files', 'provide', 'start', 'freeze', 'stop', 'resume',
    'remove', 'list', 'keptLaunch', 'execute', 'putFiles', 'getFiles', 'logs', 'usage', 'diskSpace', 'subscribe', 'check', 'close',
  ),
  store: port(
    tokens.store, 'sandboxes', 'name', 'conversations', 'executions', 'events', 'apiKeys', 'specs', 'listingCache', 'check', 'close',
  ),
  auth: port(tokens.auth, 'authenticate', 'description'),
  probe: port(tokens.probe, 'untilReady'),
  checkouts: port(
    tokens.checkouts, 'checkOut', 'name', 'checkBranch', 'findBranch', 'takeSnapshot', 'listChanges', 'check', 'close',
  ),
  protocols: port(tokens.agentProtocol, 'open', 'name', 'resume'),
  secrets: port(tokens.secrets, 'get'),
  clock: port(tokens.clock, 'now', 'after'),
  random: port(tokens.random, 'id', 'secret'),
  logger: port(tokens.logger, 'debug', 'info', 'warn', 'error'),
};
export type OwnAdapters = { readonly [O in keyof typeof ports]: ServiceOf<(typeof ports)[O]['token']> };
type OwnOption = keyof OwnAdapters;
const portOf: { readonly [O in OwnOption]: { readonly token: Token<OwnAdapters[O]>; readonly members: readonly string[] } } = ports;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the literal above
const ownOptions = Object.keys(ports) as OwnOption[];

/** The field that names one of Skep's own choices, for options that have some. */
const choiceFields: { readonly [O in OwnOption]?: string } = { git: 'provider', runtime: 'kind', store: 'kind', auth: 'kind' };

export function customForm(option: OwnOption): string {
  return `an object with ${portOf[option].members.join(', ')}, or a function that returns one`;
}

export function isObjectWith<Name extends string>(given: unknown, names: readonly Name[]): given is Readonly<Record<Name, unknown>> {
  return typeof given === 'object' && given !== null && names.every((name) => name in given);
}

function isAdapter<O extends OwnOption>(given: unknown, option: O): given is OwnAdapters[O] {
  return isObjectWith(given, portOf[option].members.slice(0, 1));
}

/** Returns the names of the required members that the adapter lacks, as a list; null if it has all. */
function missingMembers(adapter: object, option: OwnOption): string | null {
  return portOf[option].members.filter((name) => Reflect.get(adapter, name) === undefined).join(', ') || null;
}

/** Returns the problems of ready-made adapters: promises, missing members of a port, and names of git providers that are taken. */
export function adapterProblemsIn(options: SkepOptions): FieldProblem[] {
  const problems = ownOptions.flatMap((option) => {
    const given: unknown = options[option];
    const isList = option === 'git' || option === 'protocols';
    if (isList !== Array.isArray(given)) return [];
    return [given].flat().flatMap((each: unknown, index): FieldProblem[] => {
      const problem = isObjectWith(each, []) ? adapterProblem(each, option) : null;
      return problem === null ? [] : [{ path: isList ? [option, index] : [option], problem }];
    });
  });
  return [...problems, ...takenNames(options.git)];
}

function adapterProblem(given: object, option: OwnOption): string | null {
  if ('then' in given) return 'is a promise; did you forget await?';
  const choice = isAdapter(given, option) ? undefined : choiceFields[option];
  // One of Skep's own choices. Its schema finds the problems.
  if (choice !== undefined && choice in given) return null;
  const missing = missingMembers(given, option);
  if (missing === null) return null;
  return choice === undefined ? `is an adapter without ${missing}` : `has no ${choice}, and is no adapter without ${missing}`;
}

function takenNames(given: unknown): FieldProblem[] {
  const names = new Map<unknown, number>();
  return (Array.isArray(given) ? given : []).flatMap((provider: unknown, index): FieldProblem[] => {
    if (!isAdapter(provider, 'git') || provider.name === undefined) return [];
    const { name } = provider;
    const first = names.get(name);
    names.set(name, first ?? index);
    if (first === undefined) return [];
    return [{ path: ['git', index], problem: `has the name ${JSON.stringify(name)}, which git[${first}] has already` }];
  });
}

/** Checks each adapter that is opened, because those of modules are in no option. The start fails with a {@link ConfigError}. */
export function checkMembers(container: Container): void {
  for (const option of ownOptions) {
    container.onActivation<unknown>(portOf[option].token.id, (_, adapter) => {
      const missing = isObjectWith(adapter, []) ? missingMembers(adapter, option) : '';
      if (missing === null) return adapter;
      const problem = missing === '' ? `is ${kindOf(adapter)} instead of an adapter` : `is an adapter without ${missing}`;
      return Promise.reject(new ConfigError([{ name: option, problem, form: customForm(option) }]));
    });
  }
}

/** Checks the hosts of all opened git providers, because those of modules are in no option. Throws a {@link ConfigError}. */
export function checkHosts(git: readonly GitProvider[]): void {
  const owners = new Map<string, string>();
  const wrong = git.flatMap(({ name, hosts }) => hosts.flatMap((host) => {
    const owner = owners.get(host);
    owners.set(host, owner ?? name);
    const isHost = /^[^A-Z/@\s]+$/u.test(host);
    if (isHost && owner === undefined) return [];
    const problem = isHost ? `which the git provider ${owner} has already` : 'which is not a host in lower case, without a scheme or path';
    return [{ name: `git provider ${name}`, problem: `has the host ${JSON.stringify(host)}, ${problem}`, form: hostForm }];
  }));
  if (wrong.length > 0) throw new ConfigError(wrong);
}

const hostForm = "hosts of this git provider alone, for example ['git.example.com', 'git.example.com:8443']";

/** Returns true if the option is an adapter or a function, which counts as a factory, and not one of Skep's own choices. */
export function isCustomAdapter<O extends OwnOption, Deps = AdapterDeps>(given: unknown, option: O): given is Own<OwnAdapters[O], Deps> {
  return typeof given === 'function' || isAdapter(given, option);
}

/** Binds the adapter of an option. Throws a {@link ConfigError} if the function does not return an adapter (`logger: console.log`). */
export function provideCustom<O extends OwnOption, D>(
  bind: Bind, option: O, deps: Token<D>, given: Own<OwnAdapters[O], D>, name: string = option,
): void {
  provide(bind, portOf[option].token, { deps, closers: tokens.closers }, async ({ deps, closers }) => {
    if (!isFactory(given)) return given;
    const adapter = await given(deps);
    const missing = isObjectWith(adapter, []) ? missingMembers(adapter, option) : '';
    if (missing !== null) {
      const returned = missing === '' ? kindOf(adapter) : `an object without ${missing}`;
      throw new ConfigError([{ name, problem: `is a function that returned ${returned}`, form: customForm(option) }]);
    }
    if (isClosable(adapter)) closers.defer(() => adapter.close());
    return adapter;
  });
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? 'nothing' : `a ${typeof value}`;
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
  // Checked later, so it may be anything.
  const given: readonly unknown[] = Array.isArray(protocols) ? protocols : [{ name: defaultProtocol }];
  const names = given.map((protocol) => (isObjectWith(protocol, ['name']) ? protocol.name : null));
  return names.every((name) => typeof name === 'string') ? names : null;
}

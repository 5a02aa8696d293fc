import {
  createManualClock, createMemoryProbe, createMemoryRuntime, createMemoryStore, createSeededRandom, MemoryEngine,
} from '../../src/adapters/memory/index.ts';
import { ConversationDriver } from '../../src/application/conversations/driver.ts';
import { Conversations } from '../../src/application/conversations/conversations.ts';
import { Reconciler } from '../../src/application/reconciler.ts';
import { Repositories } from '../../src/application/repositories.ts';
import { SandboxDriver } from '../../src/application/sandboxes/driver.ts';
import { Sandboxes } from '../../src/application/sandboxes/sandboxes.ts';
import { SandboxSpecs } from '../../src/application/sandboxes/specs.ts';
import { Failure } from '../../src/domain/failure.ts';
import type { Sandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec-defaults.ts';
import type { SandboxSpec } from '../../src/domain/sandbox-spec.ts';
import type { SandboxLimits } from '../../src/domain/limits.ts';
import type { GitProvider } from '../../src/ports/git-provider.ts';
import type { SandboxRuntime } from '../../src/ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../src/ports/sandbox-store.ts';
import type { Store } from '../../src/ports/store.ts';

export type RuntimeCall = 'start' | 'freeze' | 'stop' | 'resume' | 'remove' | 'inspect' | 'list';

/** How a call on the runtime fails: before it has had its effect, or after, so that only the answer is lost. */
export type Fault = { readonly call: RuntimeCall; readonly when: 'before' | 'after' };

export interface WorldOptions {
  readonly specs?: readonly SandboxSpec[];
  readonly limits?: Partial<SandboxLimits>;
  readonly providers?: readonly GitProvider[];
}

/** One write of a sandbox, as the store saw it. */
export interface Write {
  readonly from: Sandbox | null;
  readonly to: Sandbox;
}

/** The use cases over memory adapters, with a clock, faults and crashes that the test commands. */
export function createWorld(options: WorldOptions = {}) {
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const engine = new MemoryEngine();
  const probe = createMemoryProbe();
  const writes: Write[] = [];
  const store = observed(createMemoryStore(), writes);
  const faults: Fault[] = [];
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const specs = new SandboxSpecs(options.specs ?? [sandboxSpec({ id: 'plain', ready: { probe: { kind: 'none' }, withinMs: 10_000 } })], store.specs, clock);
  const repositories = new Repositories(options.providers ?? []);

  /** A process of Skep over the same store and engine. */
  function boot() {
    const runtime = faulty(createMemoryRuntime(engine), faults);
    const driver = new SandboxDriver({ store: store.sandboxes, runtime, probe, clock, logger });
    const limits = { runningPerOwner: null, running: null, ...options.limits };
    const sandboxes = new Sandboxes({ store: store.sandboxes, specs, driver, limits, clock, random, answerWithinMs: 5000 });
    const conversationDriver = new ConversationDriver({ store: store.conversations, sandboxes, sandboxDriver: driver, clock, logger });
    const conversations = new Conversations({
      store: store.conversations, sandboxStore: store.sandboxes, sandboxes, specs, repositories, driver: conversationDriver, clock, random, answerWithinMs: 5000,
    });
    const reconciler = new Reconciler({
      store, runtime, sandboxDriver: driver, conversationDriver, clock, logger, sweepEveryMs: 1000, orphanGraceMs: 2000, rememberDeletedMs: 60_000,
    });
    return { runtime, driver, sandboxes, conversationDriver, conversations, reconciler };
  }

  return { clock, engine, probe, store, writes, faults, boot };
}

/** Lets everything that is ready to run, run: the memory adapters answer within the same turn of the event loop. */
export async function calm(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

function observed(store: Store, writes: Write[]): Store {
  const { sandboxes } = store;
  const noting = (write: 'replace' | 'admit') => async (sandbox: Sandbox, limits: SandboxLimits) => {
    const from = await sandboxes.find(sandbox.id);
    const outcome = await (write === 'replace' ? sandboxes.replace(sandbox) : sandboxes.admit(sandbox, limits));
    if (outcome.kind === 'replaced') writes.push({ from, to: sandbox });
    return outcome;
  };
  const watched: SandboxStore = {
    insert: async (sandbox, limits, claim) => {
      const outcome = await sandboxes.insert(sandbox, limits, claim);
      if (outcome.kind === 'inserted') writes.push({ from: null, to: sandbox });
      return outcome;
    },
    replace: noting('replace') as SandboxStore['replace'],
    admit: noting('admit'),
    touch: (id, at) => sandboxes.touch(id, at),
    find: (id) => sandboxes.find(id),
    findMany: (ids) => sandboxes.findMany(ids),
    search: (owner, filter, page) => sandboxes.search(owner, filter, page),
    scan: (after, limit) => sandboxes.scan(after, limit),
    purge: (before) => sandboxes.purge(before),
  };
  return { ...store, sandboxes: watched, check: () => store.check(), close: () => store.close() };
}

function faulty(runtime: SandboxRuntime, faults: Fault[]): SandboxRuntime {
  const through = <A extends readonly unknown[], R>(call: RuntimeCall, method: (...args: A) => Promise<R>) => async (...args: A): Promise<R> => {
    const index = faults.findIndex((fault) => fault.call === call);
    const [fault] = index < 0 ? [] : faults.splice(index, 1);
    const failure = new Failure('runtime_unavailable', { runtime: 'memory', reason: 'a planted fault', retryAfterSeconds: 1 });
    if (fault?.when === 'before') throw failure;
    const result = await method(...args);
    if (fault?.when === 'after') throw failure;
    return result;
  };
  return {
    name: runtime.name,
    start: through('start', runtime.start.bind(runtime)),
    freeze: through('freeze', runtime.freeze.bind(runtime)),
    stop: through('stop', runtime.stop.bind(runtime)),
    resume: through('resume', runtime.resume.bind(runtime)),
    remove: through('remove', runtime.remove.bind(runtime)),
    inspect: through('inspect', runtime.inspect.bind(runtime)),
    list: through('list', runtime.list.bind(runtime)),
    subscribe: (listener) => runtime.subscribe(listener),
    check: () => runtime.check(),
    close: () => runtime.close(),
  };
}

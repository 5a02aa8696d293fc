import type { ConversationReconciler } from '../../src/application/conversations/conversation-reconciler.ts';
import type { WhenFull } from '../../src/application/sandboxes/admit-sandbox.ts';
import { Failure } from '../../src/domain/failure.ts';
import type { ProbeMiss } from '../../src/domain/readiness.ts';
import type { SandboxLimits } from '../../src/domain/admission-limits.ts';
import { sandboxSpec, type SandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { createContainer } from '../../src/composition/create-skep.ts';
import type { Rules } from '../../src/composition/wiring/use-case-modules.ts';
import { type Token, tokens } from '../../src/composition/wiring/tokens.ts';
import type { ProbeListener, ReadinessProbe } from '../../src/ports/readiness-probe.ts';
import type { Store } from '../../src/ports/store.ts';
import { createManualClock, createMemoryCheckouts, createSeededRandom } from '../doubles/memory/index.ts';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { doublesModule } from '../support/doubles-module.ts';
import { ScriptedEngine } from './engine.ts';
import { Faults, Mortal } from './mortal.ts';
import { observed, type Write } from './observed.ts';
import { calm, passSeconds } from './port-calls.ts';

export interface WorldOptions {
  readonly specs?: readonly SandboxSpec[];
  readonly limits?: Partial<SandboxLimits>;
  readonly whenFull?: WhenFull;
  /** Default: the default of a deployment. */
  readonly minIdleMs?: number;
  /** How many starts a process runs at once. Default: 2. */
  readonly atOnce?: number;
  /** How long a sandbox that the store does not know is kept. Default: 24 hours. */
  readonly quarantineForMs?: number;
  readonly onWrite?: (write: Write) => void;
  /** The values of the specs' secrets. */
  readonly secrets?: Readonly<Record<string, string>>;
}

export type Process = ReturnType<ReturnType<typeof createWorld>['boot']>;

/** Deleted records are kept, so that a test can read them. */
const rememberDeletedMs = 3_600_000;

/** These worlds have no conversations. */
const idle = { enqueue() {}, enqueueUnpromptedWork() {} } as unknown as ConversationReconciler;

/** The use cases over a store in memory and a scripted engine, with a clock, faults and deaths that the test controls. */
export function createWorld(options: WorldOptions = {}) {
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const engine = new ScriptedEngine();
  const memory = createInMemoryStore();
  const writes: Write[] = [];
  const onWrite = (write: Write): void => {
    writes.push(write);
    options.onWrite?.(write);
  };
  const store = { ...memory, sandboxes: observed(memory.sandboxes, () => clock.now(), onWrite) };
  const faults = new Faults();
  /** The messages of the log. */
  const logged: string[] = [];
  const log = (_: object, message: string): void => void logged.push(message);
  const logger = { debug() {}, info: log, warn: log, error: log };
  const missed = new Set<ProbeListener>();
  const miss = (met: ProbeMiss): void => {
    for (const tell of missed) tell(met);
  };
  const probe: ReadinessProbe = {
    async untilReady({ probe }, _urls, signal, tell = () => {}) {
      if (probe.kind === 'none') return;
      missed.add(tell);
      if (engine.isClosed('ready')) tell({ kind: 'refused' });
      await engine.pass('ready', signal).finally(() => missed.delete(tell));
    },
  };
  const someSpecs = options.specs ?? [sandboxSpec({ id: 'plain', ready: { probe: { kind: 'none' }, withinMs: 10_000 } })];

  /** A process of Skep over the same store and engine; `specs` are those of its configuration. */
  function boot(specs: readonly SandboxSpec[] = someSpecs) {
    const mortal = new Mortal(faults);
    const runtime = mortal.port('runtime', engine.runtime());
    const sandboxes = mortal.port('sandboxes', store.sandboxes);
    const conversations = mortal.port('conversations', store.conversations);
    const { limits = {}, whenFull = 'refuse', atOnce = 2 } = options;
    const closers = new AsyncDisposableStack();
    const container = createContainer({ specs, limits, whenFull, startsAtOnce: atOnce, sweepEveryMs: 1000, answerWithinMs: 5000 }, closers);
    const rules = {
      ...container.get<Rules>(tokens.rules.id), poolStartsAtOnce: 2, orphanGraceMs: 2000, rememberDeletedMs,
      quarantineForMs: options.quarantineForMs ?? 86_400_000, ...(options.minIdleMs !== undefined && { minIdleMs: options.minIdleMs }),
    };
    container.load(doublesModule({
      rules, runtime, probe, random, logger,
      clock: mortal.clock(clock),
      store: { ...store, sandboxes, conversations },
      checkouts: createMemoryCheckouts(),
      conversationReconciler: idle,
      secrets: { get: (name) => options.secrets?.[name] ?? null },
    }));
    const get = <T>({ id }: Token<T>): T => container.get<T>(id);
    return {
      mortal, runtime,
      specs: get(tokens.specs),
      queue: get(tokens.startQueue),
      sandboxReconciler: get(tokens.sandboxReconciler),
      pool: get(tokens.sandboxPool),
      sandboxes: get(tokens.sandboxes),
      overview: get(tokens.overview),
      sweeper: get(tokens.sweeper),
      shutdown: async () => await closers.disposeAsync(),
    };
  }

  /** The next calls of this name fail. */
  const refuse = (call: string, times: number): void =>
    faults.plan(...Array.from({ length: times }, () => ({ call, what: 'unavailable' as const, when: 'before' as const })));
  const pass = (seconds: number): Promise<void> => passSeconds(clock, seconds);
  return { clock, engine, store, writes, faults, refuse, miss, logged, pass, boot };
}

/** A world with one process, which has started one sandbox of the default spec. */
export async function createRunning(options: WorldOptions = {}) {
  const world = createWorld(options);
  const skep = world.boot();
  await skep.sweeper.start();
  const { id } = await skep.sandboxes.start('me', { specId: null });
  await calm();
  return { ...world, ...skep, id };
}

/** From now on, the conversations of the sandbox can't be read. */
export function damageConversationsOf({ conversations }: Store, sandboxId: string): void {
  const findUsing = conversations.findUsing.bind(conversations);
  conversations.findUsing = async (id) => {
    if (id !== sandboxId) return await findUsing(id);
    throw new Failure('store_unavailable', { reason: { code: 'damaged' }, retryAfterSeconds: 5 });
  };
}

export { calm };

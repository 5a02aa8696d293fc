import { SandboxReconciler } from '../../src/application/sandboxes/sandbox-reconciler.ts';
import { SandboxPool } from '../../src/application/sandboxes/sandbox-pool.ts';
import type { WhenFull } from '../../src/application/sandboxes/sandbox-admission.ts';
import { Sandboxes } from '../../src/application/sandboxes/sandboxes.ts';
import { SandboxSpecs } from '../../src/application/sandboxes/sandbox-specs.ts';
import { StartQueue } from '../../src/application/sandboxes/start-queue.ts';
import { Sweeper } from '../../src/application/sweeper.ts';
import type { ProbeMiss } from '../../src/domain/readiness.ts';
import { type SandboxLimits, unlimited } from '../../src/domain/sandbox-limits.ts';
import { sandboxSpec, type SandboxSpec } from '../../src/domain/sandbox-spec.ts';
import type { ProbeListener, ReadinessProbe } from '../../src/ports/readiness-probe.ts';
import { createManualClock, createMemoryStore, createSeededRandom } from '../doubles/memory/index.ts';
import { ScriptedEngine } from './engine.ts';
import { Faults, Mortal, runtimeFailure, storeFailure } from './mortal.ts';
import { observed, type Write } from './observed.ts';

export interface WorldOptions {
  readonly specs?: readonly SandboxSpec[];
  readonly limits?: Partial<SandboxLimits>;
  readonly whenFull?: WhenFull;
  /** How many starts a process lets run at a time. Default: 2. */
  readonly atOnce?: number;
  readonly onWrite?: (write: Write) => void;
}

export type Process = ReturnType<ReturnType<typeof createWorld>['boot']>;

/** Deleted records are remembered, so that a test sees what became of them. */
const rememberDeletedMs = 3_600_000;

/** The use cases over a store in memory and a scripted engine, with a clock, faults and deaths that the test commands. */
export function createWorld(options: WorldOptions = {}) {
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const engine = new ScriptedEngine();
  const memory = createMemoryStore();
  const writes: Write[] = [];
  const onWrite = (write: Write): void => {
    writes.push(write);
    options.onWrite?.(write);
  };
  const store = { ...memory, sandboxes: observed(memory.sandboxes, () => clock.now(), onWrite) };
  const faults = new Faults();
  /** What the log was told of, in words. */
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
  function boot(specList: readonly SandboxSpec[] = someSpecs) {
    const mortal = new Mortal(faults);
    const own = {
      clock: mortal.clock(clock),
      runtime: mortal.port(engine.runtime(), runtimeFailure),
      sandboxes: mortal.port(store.sandboxes, storeFailure),
      conversations: mortal.port(store.conversations, storeFailure),
    };
    const deps = { store: own.sandboxes, runtime: own.runtime, clock: own.clock, random, logger };
    const specs = new SandboxSpecs(specList, store.specs, own.clock);
    const queue = new StartQueue(options.atOnce ?? 2);
    const driver = new SandboxReconciler({ ...deps, probe, queue });
    const pool = new SandboxPool({ ...deps, specs, reconciler: driver, startsAtOnce: 2 });
    const sandboxes = new Sandboxes({
      ...deps, specs, reconciler: driver, pool, limits: { ...unlimited, ...options.limits }, whenFull: options.whenFull ?? 'refuse', answerWithinMs: 5000,
    });
    const reconciler = new Sweeper({
      store: { ...store, sandboxes: own.sandboxes, conversations: own.conversations },
      runtime: own.runtime, sandboxReconciler: driver, conversationReconciler: { enqueue() {} }, pool, clock: own.clock, logger,
      sweepEveryMs: 1000, orphanGraceMs: 2000, rememberDeletedMs,
    });
    const shutdown = async (): Promise<void> => {
      await Promise.all([reconciler.close(), pool.close(), driver.close()]);
    };
    return { mortal, runtime: own.runtime, specs, queue, driver, pool, sandboxes, reconciler, shutdown };
  }

  return { clock, engine, store, writes, faults, miss, logged, boot };
}

/** Lets everything that is ready to run, run: the ports answer within the same turn of the event loop. */
export async function calm(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

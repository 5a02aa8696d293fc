import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isFailure } from '../../src/domain/failure.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { poolFingerprint } from '../../src/domain/pool-plan.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { scenario, type Action, type Scenario } from './model-actions.ts';
import { checkEnd, checkEvents, checkRecords, checkWrite } from './model-invariants.ts';
import { calm, createWorld, type Process, type WorldOptions } from './world.ts';

/*
 * Random calls by several clients of two owners, on several processes at once. The store and the runtime fail at any call, a
 * process dies at any call, and sandboxes crash, are removed and are restarted outside Skep. The invariants of a write are
 * checked at every write. Then the faults end, and the invariants of the end are checked on the records and the engine.
 */

const rest = { freezeAfterMs: 14_000, stopAfterMs: 6000, deleteAfterMs: 15_000, maxLifeMs: 40_000 };
const ready = { probe: { kind: 'tcp' as const, port: 80 }, withinMs: 10_000 };
const specs = [
  sandboxSpec({ id: 'plain', rest, ready: { probe: { kind: 'none' }, withinMs: 10_000 } }),
  sandboxSpec({ id: 'timed', rest: { ...rest, timeoutPause: { kind: 'freeze', afterMs: 9000, renewedMs: 5000 } }, ready: { probe: { kind: 'none' }, withinMs: 10_000 } }),
  sandboxSpec({ id: 'warm', rest, ready, ports: [{ name: 'HTTP', port: 80 }], pool: { size: 2 } }),
];
/** The specs of the other version of the deployment. */
const changed = specs.map((spec) => (spec.pool.size > 0 ? { ...spec, initialEnv: { VERSION: '2' } } : spec));
const pool = { fingerprint: poolFingerprint(specs[2] ?? sandboxSpec({ id: 'none' })), size: 2 };
const limits = { ...unlimited, running: 4, runningPerOwner: 3, existing: 8 };

/** The failures that a client may get. Any other failure is a defect. */
const tolerated = new Set([
  'sandbox_not_found', 'freeze_unsupported', 'sandbox_busy', 'sandbox_not_running', 'sandbox_not_paused', 'sandbox_limit_reached',
  'runtime_unavailable', 'runtime_timeout', 'store_unavailable',
]);

test.each([['refuse', 300], ['pause_idle', 120]] as const)('random calls and faults break no invariant and end in a stable state (when full: %s)', { timeout: 300_000 }, async (whenFull, numRuns) => {
  await fc.assert(fc.asyncProperty(scenario, (scenario) => play(scenario, whenFull)), { numRuns });
});

async function play({ batches, stuck }: Scenario, whenFull: WorldOptions['whenFull'] & string): Promise<void> {
  const broken: unknown[] = [];
  const handedOut = new Set<string>();
  const deaths = new Map<string, number>();
  let batch = 0;
  const checked: Promise<void>[] = [];
  const world = createWorld({
    limits, specs, whenFull,
    minIdleMs: 1000,
    // If starts hang, all waiting starts must have had a start slot before the end is checked.
    atOnce: stuck === null ? 2 : 4,
    onWrite: (write) => {
      const { member, to } = write;
      checked.push(noting(async () => {
        checkWrite(write);
        if (member !== null) {
          expect(handedOut.has(member), `${member} was handed out twice`).toBe(false);
          handedOut.add(member);
          // It may die while it is claimed, but not before.
          const runs = world.engine.inspect(to.instanceId).state === 'running';
          expect(runs || deaths.get(to.instanceId) === batch, `${member} was handed out dead`).toBe(true);
        }
        checkRecords(await world.store.sandboxes.scan(null, 1000), limits, 2);
      }));
    },
  });
  world.engine.onDeath = (id) => void deaths.set(id, batch);
  async function noting(check: () => Promise<void>): Promise<void> {
    try {
      await check();
    } catch (error) {
      broken.push(error);
    }
  }

  const processes: Process[] = [];
  const alive = () => processes.filter(({ mortal }) => !mortal.isDead);
  const boot = async (isChanged = false): Promise<void> => {
    const process = world.boot(isChanged ? changed : specs);
    processes.push(process);
    await Promise.race([process.sweeper.start(), process.mortal.died]);
  };
  const ids: { readonly id: string; readonly owner: string }[] = [];
  const deleted = new Set<string>();
  const paused = new Set<string>();
  /** How many resumes were requested, and answered, by sandbox. */
  const asked = new Map<string, number>();
  const answered = new Map<string, number>();

  /** Makes a call of a client. Returns the result, or null if the call failed or its process died. */
  const told = async <T>(who: number, call: (process: Process) => Promise<T>): Promise<T | null> => {
    const process = alive()[who % Math.max(1, alive().length)];
    if (process === undefined) return null;
    try {
      return await Promise.race([call(process), process.mortal.died.then(() => null)]);
    } catch (error) {
      if (!isFailure(error) || !tolerated.has(error.code)) throw error;
      return null;
    }
  };

  const act = async (action: Action): Promise<void> => {
    const one = 'which' in action ? ids[action.which % Math.max(1, ids.length)] : undefined;
    if ('which' in action && one === undefined) return;
    const { id, owner } = one ?? { id: '', owner: '' };
    const container = 'container' in action ? (world.engine.list()[action.container]?.id ?? '') : '';
    switch (action.kind) {
      case 'start': {
        const started = await told(action.who, ({ sandboxes }) => sandboxes.start(action.owner, { specId: action.spec }));
        if (started !== null) ids.push({ id: started.id, owner: action.owner });
        return;
      }
      case 'pause': {
        const before = asked.get(id) === answered.get(id) ? asked.get(id) : null;
        const now = await told(action.who, ({ sandboxes }) => sandboxes.pause(owner, id, action.pauseKind));
        if (now?.status === 'PAUSED') expect(world.writes.some(({ to }) => to.id === id && to.status === 'PAUSED'), `${id} is not PAUSED`).toBe(true);
        if (now?.status === 'PAUSED' && action.pauseKind === 'stop') expect(now.pauseKind, `${id} is not stopped`).toBe('stop');
        if (now?.status === 'PAUSED' && before === asked.get(id)) paused.add(id);
        return;
      }
      case 'resume':
        paused.delete(id);
        count(asked, id);
        await told(action.who, ({ sandboxes }) => sandboxes.resume(owner, id));
        count(answered, id);
        return;
      case 'delete':
        if ((await told(action.who, async ({ sandboxes }) => (await sandboxes.delete(owner, id), true))) === true) deleted.add(id);
        return;
      case 'crash':
        return world.engine.crash(container);
      case 'vanish':
        return world.engine.vanish(container);
      case 'end':
        return world.engine.endFromOutside(container);
      case 'freeze':
        return world.engine.freezeFromOutside(container);
      case 'restart-engine':
        return world.engine.restart();
      case 'switch-engine':
        for (const { id } of world.engine.list()) deaths.set(id, batch);
        return world.engine.switchEngine();
      case 'mute':
        world.engine.isMute = action.isMute;
        return;
      case 'ability':
        world.engine.canFreeze = action.canFreeze;
        return;
      case 'gate':
        if (action.isOpen) world.engine.open(action.gate);
        else world.engine.close(action.gate);
        return;
      case 'fault':
        world.faults.plan(action.fault);
        return;
      case 'boot':
        if (alive().length < 2) await boot(action.isChanged);
        return;
      case 'shutdown': {
        const process = alive()[action.who];
        if (process !== undefined) await shutdown(process);
        return;
      }
      case 'sweep': {
        const process = alive()[action.who];
        if (process !== undefined) await told(action.who, ({ sweeper }) => sweeper.sweep());
        return;
      }
      case 'advance':
        world.clock.advance(action.ms);
    }
  };

  /** Waits until the batch is done, while the clock advances. */
  const finished = async (work: Promise<unknown>): Promise<void> => {
    const state = { isDone: false };
    const done = work.finally(() => (state.isDone = true));
    done.catch(() => {});
    for (let seconds = 0; !state.isDone; seconds += 1) {
      expect(seconds, 'a call is not answered').toBeLessThan(120);
      await calm();
      if (!state.isDone) world.clock.advance(seconds === 0 ? 1 : 1000);
    }
    await done;
  };

  await boot();
  for (const actions of batches) {
    batch += 1;
    if (alive().length === 0) await boot();
    await finished(Promise.all(actions.map(act)));
  }

  world.faults.planned.length = 0;
  world.engine.isMute = false;
  for (const gate of ['provide', 'start', 'ready'] as const) world.engine.open(gate);
  await calm();
  if (stuck !== null) world.engine.close(stuck);
  await Promise.all(alive().map(shutdown));
  await boot();
  await world.pass(25);
  await Promise.all(checked);
  if (broken.length > 0) throw broken[0];

  const found = await Promise.all(ids.map(({ id }) => world.store.sandboxes.find(id)));
  const records = [...new Map([...(await world.store.sandboxes.scan(null, 1000)), ...found.filter((one) => one !== null)].map((one) => [one.id, one])).values()];
  const facts = new Map(world.engine.list().map((fact) => [fact.id, fact]));
  checkEnd({ records, facts, now: world.clock.now(), pool: stuck === null ? pool : null });
  const events = (await Promise.all(['me', 'you'].map((ownerId) => world.store.events.read({ ownerId }, 0, 1000)))).flat();
  checkEvents(events, records, world.writes);
  for (const { id } of ids) {
    const record = records.find((one) => one.id === id);
    expect(record, `${id} was started and is not known`).toBeDefined();
    if (deleted.has(id)) expect(record?.deletedAt, `${id} was deleted and is there`).not.toBeNull();
    if (paused.has(id)) expect(record?.status, `${id} was paused, and nobody resumed it`).not.toBe('RUNNING');
  }
  await Promise.all(alive().map(shutdown));
}

async function shutdown(process: Process): Promise<void> {
  await Promise.race([process.shutdown(), process.mortal.died]);
  process.mortal.die();
}

function count(counts: Map<string, number>, id: string): void {
  counts.set(id, (counts.get(id) ?? 0) + 1);
}

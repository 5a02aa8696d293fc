import type Docker from 'dockerode';
import type { ObservedSandbox } from '../../../../domain/sandbox.ts';
import { isFailureOf } from '../../../../domain/failure.ts';
import type { Progress, SandboxLaunch } from '../../../../ports/sandbox-runtime.ts';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import type { Move } from '../events/watch.ts';
import { stateOf } from '../facts/facts.ts';
import { creator } from './create.ts';
import { removeHelpers } from './helper.ts';
import type { Networks } from './networks.ts';
import type { Preparation } from './preparation.ts';
import { runner } from './run.ts';
import { removeVolumes } from './volumes.ts';
import { removeContainer } from './remove.ts';

type Found = Docker.ContainerInspectInfo;

export interface ActionOptions {
  readonly connection: Connection;
  readonly networks: Networks;
  readonly preparation: Preparation;
  readonly publishAddress: string;
  readonly stopGraceMs: number;
  readonly callTimeoutMs: number;
}

/**
 * The moves of one sandbox, one at a time. Each looks at what is, and asks the engine for what is left to do; what holds then
 * decides, not what the engine answered. Each can be made again after it was interrupted anywhere. They answer with the fact
 * where that is known without another look: where the engine did what only one that was as it was found can have done to it. Null otherwise.
 */
export interface Actions {
  start(launch: SandboxLaunch, progress: Progress, signal: AbortSignal, move: Move): Promise<ObservedSandbox | null>;
  freeze(id: string, move: Move): Promise<ObservedSandbox | null>;
  stop(id: string, move: Move): Promise<ObservedSandbox | null>;
  resume(launch: SandboxLaunch, signal: AbortSignal, move: Move): Promise<ObservedSandbox | null>;
  remove(id: string, move: Move): Promise<ObservedSandbox | null>;
  /** It was found so, which saves the next move a look. */
  note(found: Found | 'foreign' | null, fact: ObservedSandbox): void;
  /** Something happened to it. */
  forget(id: string): void;
  /** Cuts a stop short that is under way. */
  hurry(id: string): Promise<void>;
}

export function createActions(options: ActionOptions): Actions {
  const { connection, preparation } = options;
  const { docker, call, find } = connection;
  const create = creator(options);
  const run = runner(options);

  /** How each was found last: the container, which stays whose it is, and the fact, which may be another one by now. */
  const last = new Map<string, { readonly container: string; readonly fact: ObservedSandbox }>();

  /** Does it at once to a container that was found in the state where it is to be done. Null where the engine did not. */
  async function straight(
    id: string,
    from: ObservedSandbox['state'],
    to: ObservedSandbox['state'],
    request: (container: Docker.Container) => Promise<unknown>,
  ): Promise<ObservedSandbox | null> {
    const known = last.get(id);
    if (known?.fact.state !== from) return null;
    try {
      await request(docker.getContainer(known.container));
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return null;
    }
    const fact = { ...known.fact, state: to };
    // What was told of it meanwhile came after it.
    if (last.get(id) === known) last.set(id, { ...known, fact });
    return fact;
  }
  const pause = (container: Docker.Container): Promise<unknown> => call((abortSignal) => container.pause({ abortSignal }));
  const unpause = (container: Docker.Container): Promise<unknown> => call((abortSignal) => container.unpause({ abortSignal }));

  /** Asks the engine. Where it refuses, that matters only if nothing came of it. */
  async function ask(id: string, before: Found, request: () => Promise<unknown>): Promise<void> {
    try {
      await request();
    } catch (error) {
      if (statusOf(error) === null) throw error;
      const now = own(await find(id));
      if (now !== null && now.Id === before.Id && statusNow(now) === statusNow(before)) throw error;
    }
  }

  return {
    async start(launch, progress, signal, move) {
      const found = (await find(launch.id)) ?? (await create(launch, progress, signal));
      if (found === 'foreign' || statusNow(found) !== 'created') return null;
      signal.throwIfAborted();
      const runnable = await preparation.prepare(found, launch.id);
      signal.throwIfAborted();
      progress('starting its container');
      await run(found, launch, move);
      if (!runnable) await ended(connection, found.Id);
      return null;
    },
    async freeze(id, move) {
      move.aim('frozen');
      const fact = await straight(id, 'running', 'frozen', pause);
      if (fact !== null) return fact;
      const found = own(await find(id));
      if (found === null || statusNow(found) !== 'running') move.aim();
      else await ask(id, found, () => pause(docker.getContainer(found.Id)));
      return null;
    },
    async stop(id, move) {
      const found = own(await find(id));
      if (found === null || (statusNow(found) !== 'running' && statusNow(found) !== 'frozen')) return null;
      move.aim('running', 'stopped');
      const t = Math.ceil(options.stopGraceMs / 1000);
      const limitMs = options.callTimeoutMs + t * 1000;
      await ask(id, found, () => call((abortSignal) => docker.getContainer(found.Id).stop({ t, abortSignal }), { limitMs }));
      return null;
    },
    async resume(launch, signal, move) {
      move.aim('running');
      const fact = await straight(launch.id, 'frozen', 'running', unpause);
      if (fact !== null) return fact;
      const found = own(await find(launch.id));
      signal.throwIfAborted();
      const state = found === null ? 'absent' : statusNow(found);
      if (found !== null && state === 'stopped') await run(found, launch, move);
      else if (found !== null && state === 'frozen') await ask(launch.id, found, () => unpause(docker.getContainer(found.Id)));
      else move.aim();
      return null;
    },
    async remove(id, move) {
      const found = await find(id);
      if (found === 'foreign') return null;
      if (found !== null) {
        move.aim('running', 'stopped', 'absent');
        await removeContainer(connection, found.Id);
        if (found.HostConfig.ReadonlyRootfs !== true) return null;
      }
      await removeHelpers(connection, id);
      await removeVolumes(connection, id);
      return null;
    },
    note(found, fact) {
      const container = own(found)?.Id;
      if (container === undefined) last.delete(fact.id);
      else last.set(fact.id, { container, fact });
    },
    forget: (id) => void last.delete(id),
    async hurry(id) {
      const found = own(await find(id));
      if (found === null) return;
      await ask(id, found, () => call((abortSignal) => docker.getContainer(found.Id).kill({ signal: 'SIGKILL', abortSignal })));
    },
  };
}

/** What is not the deployment's is as if it were not there. */
function own(found: Found | 'foreign' | null): Found | null {
  return found === 'foreign' ? null : found;
}

function statusNow({ State }: Found): ObservedSandbox['state'] {
  return stateOf(State.Status, State.Error);
}

/** Waits for what is known to end at once, but not for ever, should it not. */
async function ended({ docker, call }: Connection, containerId: string): Promise<void> {
  const wait = call((abortSignal) => docker.getContainer(containerId).wait({ abortSignal }), { limitMs: 5_000 });
  await wait.catch((error: unknown) => {
    if (statusOf(error) === null && !isFailureOf(error, 'runtime_timeout')) throw error;
  });
}

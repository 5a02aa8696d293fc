import type Docker from 'dockerode';
import { isFailureOf } from '../../../domain/failure.ts';
import type { ObservedSandbox } from '../../../domain/sandbox.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { creator } from './create-container.ts';
import { type Connection, statusOf } from './engine.ts';
import { type Preparation, removeHelpers } from './init-container.ts';
import { isFull, isGone, maxNetworks, type Networks } from './networks.ts';
import { stateOf } from './observed-sandbox.ts';
import { removeVolumes } from './volumes.ts';
import type { Move } from './watch.ts';

type Found = Docker.ContainerInspectInfo;

interface ActionOptions {
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
interface Actions {
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

interface RunnerOptions {
  readonly connection: Connection;
  readonly networks: Networks;
}

type Runner = (container: Docker.ContainerInspectInfo, launch: SandboxLaunch, move: Move) => Promise<void>;

/** Runs a container that does not run. One that can't be run keeps the engine's word for why. */
function runner({ connection, networks }: RunnerOptions): Runner {
  const { docker, call, find } = connection;

  /** Answers with the error of an engine that refused. */
  async function attempt(container: Docker.Container): Promise<unknown> {
    try {
      await call((abortSignal) => container.start({ abortSignal }));
      return null;
    } catch (error) {
      if (statusOf(error) === null) throw error;
      return statusOf(error) === 304 ? null : error;
    }
  }

  async function isDecided(id: string, containerId: string): Promise<boolean> {
    const now = await find(id);
    return now === null || now === 'foreign' || now.Id !== containerId || stateOf(now.State.Status, now.State.Error) !== 'created';
  }

  return async ({ Id, HostConfig, NetworkSettings }, { id, spec }, move) => {
    const container = docker.getContainer(Id);
    const full: string[] = [];
    let network = Object.keys(NetworkSettings.Networks)[0] ?? HostConfig.NetworkMode ?? 'none';
    move.aim('running');
    let error = await attempt(container);
    for (let moves = 0; moves <= maxNetworks && (isFull(error) || isGone(error)); moves += 1) {
      if (isFull(error)) full.push(network);
      const next = await networks.next(spec.isolation.network, full);
      if (next === null) break;
      await networks.move(Id, network, next);
      network = next;
      error = await attempt(container);
    }
    if (error !== null && !(await isDecided(id, Id))) throw error;
  };
}

/** Removes a container, whatever it does. Answers when it is gone. Idempotent. */
export async function removeContainer({ docker, call }: Connection, containerId: string): Promise<void> {
  const container = docker.getContainer(containerId);
  try {
    await call((abortSignal) => container.remove({ force: true, v: true, abortSignal }));
  } catch (error) {
    if (statusOf(error) === 404) return;
    if (statusOf(error) !== 409) throw error;
    // Somebody else removes it.
    await call((abortSignal) => container.wait({ condition: 'removed', abortSignal })).catch((gone: unknown) => {
      if (statusOf(gone) !== 404) throw gone;
    });
  }
}

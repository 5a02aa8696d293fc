import type Docker from 'dockerode';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { raceSignal, realTimers } from '../../shared/timeout.ts';
import { containerName, isOwn } from './identity.ts';
import { statusOf, whyUnreachable } from './engine-errors.ts';

/** How long a call may take. */
export interface CallOptions {
  /** When it fires, the call is given up, and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** In milliseconds, instead of the connection's own limit. */
  readonly limitMs?: number;
}

/** A Docker engine, how it is spoken to, and which of its containers are whose. */
export interface Connection {
  readonly docker: Docker;
  /** Whose containers are touched. */
  readonly deployment: string;
  /** Fires when the runtime is closed. */
  readonly closed: AbortSignal;
  /**
   * Makes a call on the engine, within a limit of time. The signal is for the call's `abortSignal`; it does not fire once the
   * call has answered, so that a stream that it answered with goes on. What the engine itself answers rejects as dockerode's
   * error (see `statusOf`). Failures: `runtime_unavailable`, `runtime_timeout`.
   */
  readonly call: <T>(work: (signal: AbortSignal) => Promise<T>, options?: CallOptions) => Promise<T>;
  /** The sandbox's container; null where there is none, `foreign` where its name is taken by one that is not ours. */
  readonly find: (id: string, signal?: AbortSignal) => Promise<Docker.ContainerInspectInfo | 'foreign' | null>;
}

export interface ConnectOptions {
  readonly docker: Docker;
  readonly deployment: string;
  readonly callTimeoutMs: number;
  readonly closed: AbortSignal;
}

export function connect({ docker, deployment, callTimeoutMs, closed }: ConnectOptions): Connection {
  const call: Connection['call'] = async (work, { signal, limitMs = callTimeoutMs } = {}) => {
    const controller = new AbortController();
    const leave = (): void => controller.abort(signal?.reason);
    const cancel = realTimers.after(limitMs, () => controller.abort(new Failure('runtime_timeout', { runtime: 'docker', limitMs })));
    if (signal?.aborted === true) leave();
    signal?.addEventListener('abort', leave);
    try {
      controller.signal.throwIfAborted();
      return await raceSignal(work(controller.signal), controller.signal);
    } catch (error) {
      if (controller.signal.aborted) throw controller.signal.reason;
      if (isFailure(error) || statusOf(error) !== null) throw error;
      throw new Failure('runtime_unavailable', { runtime: 'docker', reason: whyUnreachable(error), retryAfterSeconds: 5 }, { cause: error });
    } finally {
      cancel();
      signal?.removeEventListener('abort', leave);
    }
  };
  return {
    docker,
    deployment,
    closed,
    call,
    async find(id, signal) {
      const container = docker.getContainer(containerName(deployment, id));
      try {
        const found = await call((abortSignal) => container.inspect({ abortSignal }), { signal });
        return isOwn(found.Config.Labels, deployment, id) ? found : 'foreign';
      } catch (error) {
        if (statusOf(error) === 404) return null;
        throw error;
      }
    },
  };
}

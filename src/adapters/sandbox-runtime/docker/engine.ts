import { IncomingMessage } from 'node:http';
import type Docker from 'dockerode';
import { z } from 'zod';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import { Failure, isFailure } from '../../../domain/failure.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { neverAborts, onAbort, raceSignal } from '../../../ports/abort-signals.ts';
import { containerName, isOwn } from './labels.ts';

/** A Docker engine, and the deployment whose containers Skep may change. */
export type Engine = ReturnType<typeof createEngine>;

export function createEngine({ docker, deployment, callTimeoutMs, closed }: {
  readonly docker: Docker;
  readonly deployment: string;
  /** Fires when the runtime is closed. */
  readonly closed: AbortSignal;
  readonly callTimeoutMs: number;
}) {
  /**
   * Makes a call with a time limit, which `limitMs` replaces. If `signal` fires, the call is cancelled, and rejects with its reason. The
   * signal of `work` is for the call's `abortSignal`. It does not fire after the call has returned, so a stream in the response continues.
   * Rejects with dockerode's error for an error response (see `statusOf`). Failures: `runtime_unavailable`, `runtime_timeout`.
   */
  async function call<T>(
    work: (signal: AbortSignal) => Promise<T>,
    { signal = neverAborts, limitMs = callTimeoutMs }: {
      readonly signal?: AbortSignal | undefined; readonly limitMs?: number | undefined;
    } = {},
  ): Promise<T> {
    const controller = new AbortController();
    using _ = onAbort(signal, () => controller.abort(signal.reason));
    const timer = setTimeout(() => controller.abort(new Failure('runtime_timeout', { runtime: 'docker', limitMs })), limitMs);
    try {
      controller.signal.throwIfAborted();
      return await raceSignal(work(controller.signal), controller.signal);
    } catch (error) {
      if (controller.signal.aborted) throw controller.signal.reason;
      throw isFailure(error) || statusOf(error) !== null ? error : unavailable(whyUnreachable(error), error);
    } finally {
      clearTimeout(timer);
    }
  }
  /** Returns the container with this id or name. Null if there is none. */
  function inspect(container: string, signal?: AbortSignal): Promise<Docker.ContainerInspectInfo | null> {
    return unlessMissing(call((abortSignal) => docker.getContainer(container).inspect({ abortSignal }), { signal }));
  }
  /** Returns the container with the sandbox's name, which may be somebody else's. Null if there is none. */
  async function findByName(id: string, signal?: AbortSignal): Promise<Docker.ContainerInspectInfo | null> {
    return dnsLabel.test(id) ? await inspect(containerName(deployment, id), signal) : null;
  }
  /** Returns the sandbox's container. Null if there is none. */
  async function find(id: string, signal?: AbortSignal): Promise<Docker.ContainerInspectInfo | null> {
    const found = await findByName(id, signal);
    return isOwn(found, deployment, id) ? found : null;
  }
  return { docker, deployment, closed, call, inspect, find, findByName };
}

export function unavailable(reason: Reason | string, cause?: unknown, retryAfterSeconds = 5): Failure<'runtime_unavailable'> {
  const context = { runtime: 'docker', reason: typeof reason === 'string' ? explained(reason) : reason, retryAfterSeconds };
  return new Failure('runtime_unavailable', context, cause === undefined ? {} : { cause });
}

/** Skep's script could not kill the processes of an execution. */
export function killFailed(): Failure<'runtime_unavailable'> {
  return unavailable('the sandbox could not run what ends a command in it; stop the sandbox');
}

/** The engine can't be reached until somebody changes the configuration. */
export function misconfigured(reason: string, cause?: unknown): Failure<'runtime_unavailable'> {
  return unavailable(reason, cause, 60);
}

/** Turns an error response of the engine into the port's failure. With `id`, a 404 means that this sandbox's container is gone. */
export async function withFailures<T>(task: () => Promise<T>, id?: string): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const status = statusOf(error);
    if (isFailure(error) || status === null) throw error;
    if (status === 404 && id !== undefined) throw new Failure('sandbox_not_found', { id }, { cause: error });
    throw unavailable(`its engine returned the status ${status}; see the log of the engine`, error);
  }
}

/** Throws `sandbox_not_found` if the sandbox has no container. */
export async function findContainer({ find }: Engine, id: string, signal: AbortSignal): Promise<Docker.ContainerInspectInfo> {
  signal.throwIfAborted();
  const found = await find(id, signal);
  if (found === null) throw new Failure('sandbox_not_found', { id });
  return found;
}

/** Throws `sandbox_not_running` if the container can't run a program now. */
export function requireRunning(id: string, { State }: Docker.ContainerInspectInfo): void {
  if (!State.Running || State.Paused) throw new Failure('sandbox_not_running', { id, status: State.Paused ? 'frozen' : State.Status });
}

/** Returns the status of the engine's response. Null for any other error. */
export function statusOf(error: unknown): number | null {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : null;
}

/** Returns null if the engine answers 404. */
export async function unlessMissing<T>(response: Promise<T>): Promise<T | null> {
  try {
    return await response;
  } catch (error) {
    if (statusOf(error) === 404) return null;
    throw error;
  }
}

const Message = z.object({ statusCode: z.number(), json: z.object({ message: z.string() }) });

/** Returns the engine's own message, such as `No such image: nowhere:latest`. Null if the error is not from the engine. */
export function engineMessage(error: unknown): string | null {
  return Message.safeParse(error).data?.json.message ?? null;
}

/** Returns the engine's message, or else that of the error. dockerode begins its own with the status. */
export function messageOf(error: unknown): string {
  return engineMessage(error) ?? (error instanceof Error ? error.message.replace(/^\(HTTP code \d+\) [^-]* - /, '') : '');
}

/** Derives from the engine's message why it could not create or start a container. */
export function reasonOfStartError(message: string): Reason {
  const missing = /exec: "([^"]*)": (executable file not found|stat [^:]*: no such file|permission denied|is a directory)/.exec(message);
  if (missing !== null) {
    const isThere = /permission|directory/.test(missing[2] ?? '');
    return { code: isThere ? 'command_not_executable' : 'command_not_found', command: missing[1] ?? '' };
  }
  const user = /unable to find (user|group) ([^:]+)/.exec(message);
  if (user !== null) return { code: 'user_not_found', kind: user[1] === 'group' ? 'group' : 'user', name: user[2] ?? '' };
  return { code: 'launch_refused', message: shorten(message) };
}

const maxCharacters = 300;

/** The engine's messages have no length limit, and contain paths of its host. */
export function shorten(message: string): string {
  const hostPath = /\/(?:var|run|etc|home|root|usr|tmp|mnt|opt|srv|proc|sys)\/[^\s:"',)]+/g;
  const line = message.replaceAll(/\s+/g, ' ').trim().replaceAll(hostPath, '...');
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters)}...` : line;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no engine listens at its socket; start Docker, or say where it is with SKEP_DOCKER_HOST',
  ECONNREFUSED: 'its engine does not answer; start Docker, or say where it is with SKEP_DOCKER_HOST',
  EACCES: "its socket may not be used by this process's user; add the user to the group that owns it",
  EPERM: "its socket may not be used by this process's user; add the user to the group that owns it",
  ENOTFOUND: "its engine's host is not known; correct SKEP_DOCKER_HOST or DOCKER_HOST",
};

/** Returns why the engine could not be reached, without addresses or paths. */
export function whyUnreachable(error: unknown): string {
  const code = errorCode(error) ?? '';
  const known = reasons[code];
  if (known !== undefined) return known;
  if (/^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/.test(code)) {
    return `the TLS connection to its engine failed (${code}); look at the certificates that DOCKER_CERT_PATH names`;
  }
  return code === '' ? 'the connection to its engine failed' : `the connection to its engine failed (${code})`;
}

/** Returns the engine's response as a stream, which fails with the reason of a fired signal. dockerode's types declare too little of it. */
export function streamed(response: unknown, signal: AbortSignal): IncomingMessage {
  if (!(response instanceof IncomingMessage)) throw new TypeError('the client returned no HTTP stream');
  // A stream without a reader must not throw an unhandled error.
  const aborting = onAbort(signal, () => response.destroy(signal.reason));
  return response.on('error', () => {}).once('close', () => aborting[Symbol.dispose]());
}

/** Yields the lines of a stream. Throws if the stream is cut. */
export async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** The part of dockerode that makes a request. */
interface Modem {
  dial(request: object, done: (error: unknown, response: unknown) => void): void;
}

/** Makes a request that no method of dockerode can make. */
export function dial(docker: Docker, request: object): Promise<unknown> {
  const modem: Modem = docker.modem;
  return new Promise((resolve, reject) => {
    modem.dial(request, (error, response) => (error === null ? resolve(response) : reject(error)));
  });
}

/** Adds the signal that ends a call. dockerode accepts it, but its types do not declare it. */
export function withSignal<T>(options: T, abortSignal: AbortSignal): T & { readonly abortSignal: AbortSignal } {
  return { ...options, abortSignal };
}

/** Starts a container. Returns the error if the engine refused. */
export async function tryStart({ docker, call }: Engine, container: string): Promise<unknown> {
  try {
    await call((abortSignal) => docker.getContainer(container).start({ abortSignal }));
    return null;
  } catch (error) {
    if (statusOf(error) === null) throw error;
    // The container runs already.
    return statusOf(error) === 304 ? null : error;
  }
}

/** Removes a container in any state. Returns when it is gone. Idempotent. */
export async function removeContainer({ docker, call }: Engine, containerId: string): Promise<void> {
  const container = docker.getContainer(containerId);
  try {
    await unlessMissing(call((abortSignal) => container.remove({ force: true, v: true, abortSignal })));
  } catch (error) {
    if (statusOf(error) !== 409) throw error;
    // Another caller is removing it.
    await unlessMissing(call((abortSignal) => container.wait({ condition: 'removed', abortSignal })));
  }
}

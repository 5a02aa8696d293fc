import { IncomingMessage } from 'node:http';
import type Docker from 'dockerode';
import { z } from 'zod';
import { Failure, isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { raceSignal, realTimers } from '../../shared/timeout.ts';
import { containerName, isOwn } from './labels.ts';

/** How long a call may take. */
interface CallOptions {
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

interface ConnectOptions {
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

/** The status that the engine itself answered with; null where it is another error. */
export function statusOf(error: unknown): number | null {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : null;
}

/** What the engine said: `No such image: nowhere:latest`. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const said = 'json' in error && typeof error.json === 'object' && error.json !== null && 'message' in error.json ? error.json.message : null;
  return typeof said === 'string' ? said : error.message;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no engine listens at its socket; start Docker, or say where it is with SKEP_DOCKER_HOST',
  ECONNREFUSED: 'its engine does not answer; start Docker, or say where it is with SKEP_DOCKER_HOST',
  EACCES: "its socket may not be used by this process's user; add the user to the group that owns it",
  EPERM: "its socket may not be used by this process's user; add the user to the group that owns it",
  ECONNRESET: 'its engine closed the connection',
  EPIPE: 'its engine closed the connection',
  ENOTFOUND: "its engine's host is not known; correct SKEP_DOCKER_HOST or DOCKER_HOST",
  EAI_AGAIN: "its engine's host can't be looked up now",
  EHOSTUNREACH: "its engine's host can't be reached",
  ENETUNREACH: "its engine's host can't be reached",
  ETIMEDOUT: "its engine's host does not answer",
  EMFILE: 'the server has too many open files',
};

/** Why the engine could not be spoken to, in words without addresses or paths. */
export function whyUnreachable(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const known = reasons[code];
  if (known !== undefined) return known;
  if (/^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/.test(code)) {
    return `the TLS connection to its engine failed (${code}); look at the certificates that DOCKER_CERT_PATH names`;
  }
  return code === '' ? 'its engine could not be spoken to' : `its engine could not be spoken to (${code})`;
}

/** Did the engine itself say what is wrong, rather than something on the way to it? */
export function hasMessage(error: unknown): boolean {
  return statusOf(error) !== null && error instanceof Error && 'json' in error && typeof error.json === 'object' && error.json !== null && 'message' in error.json;
}

/** Runs the task, and gives what the engine answered otherwise the form that callers know. */
export async function withFailures<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const status = statusOf(error);
    if (isFailure(error) || status === null) throw error;
    throw new Failure('runtime_unavailable', { runtime: 'docker', reason: `its engine answered ${status}; its log tells more`, retryAfterSeconds: 5 }, { cause: error });
  }
}

/** What the sandbox itself can't do, or its engine can't do for it; it becomes the detail of a fact. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly detail: string;

  constructor(detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.detail = detail;
  }
}

/** The answer of a call that the engine streams. dockerode says less of it than it is. */
export function streamed(answer: unknown): IncomingMessage {
  if (answer instanceof IncomingMessage) return answer;
  throw new TypeError('the client does not answer with a stream of HTTP');
}

/** Options of a call with the signal that ends it, which the client takes and its types leave out. */
export function withSignal<T>(options: T, abortSignal: AbortSignal): T & { readonly abortSignal: AbortSignal } {
  return { ...options, abortSignal };
}

/** The oldest API that has all that is asked of it: Docker 19.03's. */
const oldestApi = [1, 40] as const;

const Info = z.object({
  MemoryLimit: z.boolean().optional(),
  PidsLimit: z.boolean().optional(),
  CpuCfsQuota: z.boolean().optional(),
  SecurityOptions: z.array(z.string()).nullish(),
});

/** Whether the engine answers and can hold sandboxes, in a line for a person. */
export async function checkEngine({ docker, call }: Connection): Promise<CheckResult> {
  try {
    const { Version, ApiVersion } = await call(() => docker.version());
    if (isTooOld(ApiVersion)) return { ok: false, detail: `Docker's engine ${Version} is too old (API ${ApiVersion}); Skep needs ${oldestApi.join('.')}, which came with Docker 19.03` };
    const lacks = lacking(Info.parse(await call(() => docker.info())));
    return { ok: true, detail: `sandboxes are containers of Docker's engine ${Version}${lacks.length === 0 ? '' : `, which can't ${lacks.join(', nor ')}`}` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: error.message };
    const status = statusOf(error);
    return { ok: false, detail: status === null ? "Docker's engine can't be spoken to" : `what listens at the engine's address answered ${status}; is it Docker?` };
  }
}

function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < oldestApi[0] || (major === oldestApi[0] && minor < oldestApi[1]);
}

/** What of a sandbox's limits it can't keep. */
function lacking({ MemoryLimit, PidsLimit, CpuCfsQuota, SecurityOptions }: z.infer<typeof Info>): string[] {
  const seccomp = SecurityOptions?.some((option) => option.includes('seccomp')) ?? false;
  return [
    ...(MemoryLimit === false ? ['limit memory'] : []),
    ...(CpuCfsQuota === false ? ['limit CPUs'] : []),
    ...(PidsLimit === false ? ['limit processes'] : []),
    ...(seccomp ? [] : ['filter system calls (seccomp)']),
  ];
}

import { IncomingMessage } from 'node:http';
import { addAbortSignal } from 'node:stream';
import type Docker from 'dockerode';
import { z } from 'zod';
import { sentenceOfFailure } from '../../shared/status-and-error-messages.ts';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import { Failure, isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { containerName, isOwn } from './labels.ts';

export interface CallOptions {
  /** If it fires, the call is cancelled, and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** In milliseconds. Replaces the engine's own limit. */
  readonly limitMs?: number | undefined;
}

/** A Docker engine, and the deployment whose containers Skep may change. */
export interface Engine {
  readonly docker: Docker;
  readonly deployment: string;
  /** Fires when the runtime is closed. */
  readonly closed: AbortSignal;
  /**
   * Makes a call with a time limit. The signal is for the call's `abortSignal`. It does not fire after the call has returned, so a stream
   * in the response continues. Rejects with dockerode's error for an error response (see `statusOf`). Failures: `runtime_unavailable`,
   * `runtime_timeout`.
   */
  readonly call: <T>(work: (signal: AbortSignal) => Promise<T>, options?: CallOptions) => Promise<T>;
  /** Returns the sandbox's container. Null if there is none, `foreign` if a container of somebody else has its name. */
  readonly find: (id: string, signal?: AbortSignal) => Promise<Docker.ContainerInspectInfo | 'foreign' | null>;
}

export function createEngine(options: Omit<Engine, 'call' | 'find'> & { readonly callTimeoutMs: number }): Engine {
  const { docker, deployment, callTimeoutMs, closed } = options;
  const call: Engine['call'] = async (work, { signal, limitMs = callTimeoutMs } = {}) => {
    const controller = new AbortController();
    const leave = (): void => controller.abort(signal?.reason);
    const timer = setTimeout(() => controller.abort(new Failure('runtime_timeout', { runtime: 'docker', limitMs })), limitMs);
    if (signal?.aborted === true) leave();
    signal?.addEventListener('abort', leave);
    try {
      controller.signal.throwIfAborted();
      return await raceSignal(work(controller.signal), controller.signal);
    } catch (error) {
      if (controller.signal.aborted) throw controller.signal.reason;
      throw isFailure(error) || statusOf(error) !== null ? error : unavailable(whyUnreachable(error), error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
    }
  };
  const find: Engine['find'] = async (id, signal) => {
    if (!dnsLabel.test(id)) return null;
    const container = docker.getContainer(containerName(deployment, id));
    const found = await unlessMissing(call((abortSignal) => container.inspect({ abortSignal }), { signal }));
    return found === null || isOwn(found.Config.Labels, deployment, id) ? found : 'foreign';
  };
  return { docker, deployment, closed, call, find };
}

export function unavailable(reason: Reason | string, cause?: unknown, retryAfterSeconds = 5): Failure<'runtime_unavailable'> {
  const context = { runtime: 'docker', reason: typeof reason === 'string' ? explained(reason) : reason, retryAfterSeconds };
  return new Failure('runtime_unavailable', context, cause === undefined ? {} : { cause });
}

/** The engine can't be reached until somebody changes the configuration. */
export function misconfigured(reason: string, cause?: unknown): Failure<'runtime_unavailable'> {
  return unavailable(reason, cause, 60);
}

/** Turns an error response of the engine into the port's failure. */
export async function withFailures<T>(task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const status = statusOf(error);
    throw isFailure(error) || status === null ? error : unavailable(`its engine answered ${status}; its log tells more`, error);
  }
}

/** Throws `sandbox_not_found` if the sandbox has no container. */
export async function findContainer({ find }: Engine, id: string, signal: AbortSignal): Promise<Docker.ContainerInspectInfo> {
  signal.throwIfAborted();
  const found = await find(id, signal);
  if (found === null || found === 'foreign') throw new Failure('sandbox_not_found', { id });
  return found;
}

/** The sandbox or its engine can't do something. The reason becomes that of the observed sandbox. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly reason: Reason;

  constructor(reason: Reason, options?: ErrorOptions) {
    super(reason.code, options);
    this.reason = reason;
  }
}

/** Returns the status of the engine's response. Null for any other error. */
export function statusOf(error: unknown): number | null {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : null;
}

/** Returns null if the engine answers 404. */
export async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
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

/** Returns the engine's message, or the error's own. */
export function messageOf(error: unknown): string {
  return engineMessage(error) ?? (error instanceof Error ? error.message : '');
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
  return code === '' ? 'its engine could not be spoken to' : `its engine could not be spoken to (${code})`;
}

/** Returns the engine's response as a stream, until the signal fires. dockerode's types declare too little of it. */
export function streamed(answer: unknown, signal?: AbortSignal): IncomingMessage {
  if (!(answer instanceof IncomingMessage)) throw new TypeError('the client does not answer with a stream of HTTP');
  // A stream without a reader must not throw an unhandled error.
  if (signal !== undefined) addAbortSignal(signal, answer.on('error', () => {}));
  return answer;
}

/** Yields the lines of a stream. Throws if the stream is cut. */
export async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  answer.setEncoding('utf8');
  for await (const chunk of answer) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

/** Returns undefined if the text is no JSON, or does not match the schema. */
export function parseJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Adds the signal that ends a call. dockerode accepts it, but its types do not declare it. */
export function withSignal<T>(options: T, abortSignal: AbortSignal): T & { readonly abortSignal: AbortSignal } {
  return { ...options, abortSignal };
}

/** The oldest API with all features that this adapter uses: Docker 19.03. */
const oldestApi = [1, 40] as const;

const Info = z.object({
  MemoryLimit: z.boolean().optional(),
  PidsLimit: z.boolean().optional(),
  CpuCfsQuota: z.boolean().optional(),
  SecurityOptions: z.array(z.string()).nullish(),
  CgroupDriver: z.string().optional(),
});

/** Returns whether the engine answers and can run sandboxes, as one line for a person. */
export async function checkEngine({ docker, call }: Engine): Promise<CheckResult> {
  try {
    const { Version, ApiVersion } = await call(() => docker.version());
    const [major = 0, minor = 0] = ApiVersion.split('.').map(Number);
    if (major < oldestApi[0] || (major === oldestApi[0] && minor < oldestApi[1])) {
      const needed = `Skep needs ${oldestApi.join('.')}, which came with Docker 19.03`;
      return { ok: false, detail: `Docker's engine ${Version} is too old (API ${ApiVersion}); ${needed}` };
    }
    const lacks = missingLimits(Info.parse(await call(() => docker.info())));
    const but = lacks.length === 0 ? '' : `, which can't ${lacks.join(', nor ')}`;
    return { ok: true, detail: `sandboxes are containers of Docker's engine ${Version}${but}` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: sentenceOfFailure(error) };
    const status = statusOf(error);
    if (status === null) return { ok: false, detail: "Docker's engine can't be spoken to" };
    return { ok: false, detail: `what listens at the engine's address answered ${status}; is it Docker?` };
  }
}

/** Returns the time since which the engine runs, by its own clock. Null if unknown. */
export async function engineStartedAt({ docker, call }: Engine): Promise<string | null> {
  // The engine creates its default network again on each start.
  const bridge = await unlessMissing(call(() => docker.getNetwork('bridge').inspect()));
  return z.object({ Created: z.string() }).safeParse(bridge).data?.Created ?? null;
}

/** Returns false if the engine has no control groups, for example without root on an older machine. Then it can't freeze. */
export async function hasFreezer({ docker, call }: Engine): Promise<boolean> {
  return Info.parse(await call(() => docker.info())).CgroupDriver !== 'none';
}

/** Returns the limits of a sandbox that the engine can't enforce. */
function missingLimits({ MemoryLimit, PidsLimit, CpuCfsQuota, SecurityOptions, CgroupDriver }: z.infer<typeof Info>): string[] {
  const seccomp = SecurityOptions?.some((option) => option.includes('seccomp')) ?? false;
  return [
    ...(MemoryLimit === false ? ['limit memory'] : []),
    ...(CpuCfsQuota === false ? ['limit CPUs'] : []),
    ...(PidsLimit === false ? ['limit processes'] : []),
    ...(CgroupDriver === 'none' ? ['freeze sandboxes'] : []),
    ...(seccomp ? [] : ['filter system calls (seccomp)']),
  ];
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

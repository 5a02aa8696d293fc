import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { Failure } from '../../../domain/failure.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { Progress, Provision } from '../../../ports/sandbox-runtime.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { raceSignal, realTimers, startTimeout } from '../../shared/timeout.ts';
import { type Connection, messageOf, statusOf, streamed, whyUnreachable } from './engine.ts';
import { findLogin, type RegistryLogin } from './registry-login.ts';
import { shorten } from './status-details.ts';

const Runtimes = z.object({ Runtimes: z.record(z.string(), z.unknown()).nullish() });

interface Provisioning {
  provide(spec: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision>;
  /** When no pull is under way any more. */
  settled(): Promise<void>;
}

/** Gets images; those who want the same one share the work and its progress. */
export function createProvisioning(options: Omit<PullOptions, 'connection'>, connection: Connection): Provisioning {
  const { docker, call } = connection;
  const flights = createSingleFlight<Provision>();
  const audiences = new Map<string, Set<Progress>>();

  async function missingRuntime(name: string, signal: AbortSignal): Promise<string | null> {
    const { Runtimes: known } = Runtimes.parse(await call(() => docker.info(), { signal }));
    const there = Object.keys(known ?? {});
    return there.includes(name) ? null : `the engine has no OCI runtime ${JSON.stringify(name)}, only ${there.join(', ')}; install it there, or change the spec`;
  }

  async function isThere(image: string, signal: AbortSignal): Promise<boolean> {
    try {
      await call(() => docker.getImage(image).inspect(), { signal });
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      throw error;
    }
  }

  async function pull(image: string, progress: Progress, signal: AbortSignal): Promise<Provision> {
    const audience = audiences.get(image) ?? new Set();
    const member: Progress = (line) => progress(line);
    audiences.set(image, audience.add(member));
    try {
      return await flights.join(image, signal, (shared) => pullImage({ ...options, connection }, image, (line) => audience.forEach((tell) => tell(line)), shared));
    } finally {
      audience.delete(member);
      if (audience.size === 0 && audiences.get(image) === audience) audiences.delete(image);
    }
  }

  return {
    async provide({ image, isolation: { ociRuntime } }, progress, signal) {
      signal.throwIfAborted();
      const unusable = whyUnusable(image);
      if (image === null || unusable !== null) return { kind: 'refused', detail: unusable ?? '' };
      const missing = ociRuntime === null ? null : await missingRuntime(ociRuntime, signal);
      if (missing !== null) return { kind: 'refused', detail: missing };
      return (await isThere(image, signal)) ? { kind: 'provided' } : await pull(image, progress, signal);
    },
    settled: () => flights.settled(),
  };
}

interface PullOptions {
  readonly connection: Connection;
  readonly configFolder: string;
  readonly limitMs: number;
  /** The least time between two lines of progress. */
  readonly progressMs: number;
}

/**
 * Lets the engine pull an image. Rejects with the signal's reason when that fires, and the engine stops then. Failures:
 * `runtime_unavailable`, where the engine is not there or goes away.
 */
async function pullImage({ connection, configFolder, limitMs, progressMs }: PullOptions, image: string, progress: Progress, signal: AbortSignal): Promise<Provision> {
  const registry = registryOf(image);
  const tooLate = new Error('too late');
  const limit = startTimeout(realTimers, limitMs, () => tooLate, [signal, connection.closed]);
  let login: RegistryLogin = null;
  try {
    login = await raceSignal(findLogin(configFolder, registry), limit.signal);
    const answer = await connection.call(
      (abortSignal) => connection.docker.pull(image, { abortSignal, ...(login !== null && { authconfig: login }) }),
      { signal: limit.signal, limitMs },
    );
    const error = await follow(image, streamed(answer), progress, progressMs, limit.signal);
    return error === null ? { kind: 'provided' } : { kind: 'refused', detail: describe(image, error, registry, login) };
  } catch (error) {
    if (limit.signal.aborted && limit.signal.reason === tooLate) {
      return { kind: 'refused', detail: `the image ${image} was not pulled within ${Math.round(limitMs / 1000)} s; pull it ahead, or look at the way from the engine to ${registryName(registry)}` };
    }
    if (statusOf(error) === null) throw error;
    return { kind: 'refused', detail: describe(image, messageOf(error), registry, login) };
  } finally {
    limit.end();
  }
}

/** Reads what the engine says until it has said all. Answers with the error that it says. */
async function follow(image: string, answer: Readable, progress: Progress, progressMs: number, signal: AbortSignal): Promise<string | null> {
  const state = createPullProgress(image);
  let last = '';
  let lastAt = Number.NEGATIVE_INFINITY;
  const leave = (): void => void answer.destroy(signal.reason instanceof Error ? signal.reason : undefined);
  signal.addEventListener('abort', leave, { once: true });
  try {
    let failed: string | null = null;
    for await (const text of createInterface({ input: answer, crlfDelay: Number.POSITIVE_INFINITY })) {
      const message = parse(text);
      failed ??= message.error ?? null;
      state.note(message);
      const line = state.line();
      if (line === last || performance.now() - lastAt < progressMs) continue;
      last = line;
      lastAt = performance.now();
      progress(line);
    }
    signal.throwIfAborted();
    // A line reader ends in silence where its input is cut.
    if (answer.errored !== null) throw answer.errored;
    if (!answer.readableEnded) throw new Error('the engine broke off');
    return failed;
  } catch (error) {
    signal.throwIfAborted();
    throw new Failure('runtime_unavailable', { runtime: 'docker', reason: whyUnreachable(error), retryAfterSeconds: 5 }, { cause: error });
  } finally {
    signal.removeEventListener('abort', leave);
    answer.destroy();
  }
}

function parse(text: string): PullMessage {
  try {
    return PullMessage.parse(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Why it can't be had, and what to do. */
function describe(image: string, said: string, registry: string, login: RegistryLogin): string {
  const where = registryName(registry);
  if (/unauthorized|authentication required|access (?:to the resource )?is? ?denied|denied:|no basic auth|may require 'docker login'/i.test(said)) {
    return login === null
      ? `the image ${image} does not exist, or ${where} wants a login: correct the spec's image, or log in with docker login ${registry.startsWith('https://') ? '' : registry}`.trim()
      : `the image ${image} does not exist, or ${where} refuses the login of Docker's configuration: correct the spec's image, or log in again`;
  }
  if (/manifest unknown|not found|does not exist|no such image|invalid reference/i.test(said)) return `${where} has no image ${image}; correct the spec's image, or build or load it on the engine`;
  return `the image ${image} could not be pulled from ${where}; correct the spec's image, build or load it on the engine, or let the engine reach ${where}: ${shorten(said)}`;
}

/** The registry that has an image, as Docker's configuration calls it. */
export function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  if (!isHost || first === 'docker.io' || first === 'index.docker.io') return dockerHub;
  return first;
}

/** Why a spec's image can't be asked for. What is not of the form of a name could mean something else to the engine. */
export function whyUnusable(image: string | null): string | null {
  if (image === null) return 'its spec names no image';
  const isName = /^[a-z0-9][a-z0-9._:/@-]*$/i.test(image) && !image.includes('..') && !image.includes('//');
  return isName ? null : `${JSON.stringify(image)} is no name of an image; correct the spec's image`;
}

const dockerHub = 'https://index.docker.io/v1/';

/** The registry in words. */
function registryName(registry: string): string {
  return registry === dockerHub ? 'Docker Hub' : registry;
}

/** A line of what the engine says while it pulls. */
const PullMessage = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});
type PullMessage = z.infer<typeof PullMessage>;

interface Layer {
  current: number;
  total: number;
  done: boolean;
}

const layerDone = new Set(['Pull complete', 'Already exists']);
const layerWork = /^(?:Pulling fs layer|Waiting|Downloading|Verifying Checksum|Download complete|Extracting|Pull complete|Already exists)$/;

/** Gathers what is said of the layers into one line. */
interface PullProgress {
  note(message: PullMessage): void;
  /** `pulling node:26: 2 of 5 layers, 31 of 96 MB`. */
  line(): string;
}

export function createPullProgress(image: string): PullProgress {
  const layers = new Map<string, Layer>();
  return {
    note({ id, status = '', progressDetail }) {
      if (id === undefined || !layerWork.test(status)) return;
      const layer = layers.get(id) ?? { current: 0, total: 0, done: false };
      layers.set(id, layer);
      if (status === 'Downloading') {
        layer.current = progressDetail?.current ?? layer.current;
        layer.total = progressDetail?.total ?? layer.total;
      } else if (status === 'Download complete') layer.current = layer.total;
      if (layerDone.has(status)) layer.done = true;
    },
    line() {
      const all = [...layers.values()];
      if (all.length === 0) return `pulling ${image}`;
      const sum = (key: 'current' | 'total'): number => all.reduce((bytes, layer) => bytes + layer[key], 0);
      const bytes = sum('total') > 0 ? `, ${megabytes(sum('current'))} of ${megabytes(sum('total'))} MB` : '';
      return `pulling ${image}: ${all.filter(({ done }) => done).length} of ${all.length} layers${bytes}`;
    },
  };
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6;
  return value < 10 ? value.toFixed(1) : String(Math.round(value));
}

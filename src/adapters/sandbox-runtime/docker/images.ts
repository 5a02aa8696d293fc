import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { isFailure } from '../../../domain/failure.ts';
import { isSameReason, type Reason } from '../../../domain/reason.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { Progress, Provision } from '../../../ports/sandbox-runtime.ts';
import { parseJson } from '../../shared/json.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { type Engine, linesOf, messageOf, shorten, statusOf, streamed, unavailable, unlessMissing, whyUnreachable } from './engine.ts';
import { EngineInfo } from './engine-info.ts';
import { findLogin, type RegistryLogin } from './registry-login.ts';
import { dockerSpecOptions, invalidDockerOptions } from './spec-options.ts';

interface ImageOptions {
  readonly configFolder: string;
  readonly limitMs: number;
  /** The minimum time between two progress reports. */
  readonly progressMs: number;
}

/** Pulls the images of specs. Callers that need the same image share one pull and its progress. */
export function createImages({ docker, call, closed }: Engine, { configFolder, limitMs, progressMs }: ImageOptions) {
  const pulls = createSingleFlight<Provision>();
  const listeners = new Set<{ readonly image: string; readonly progress: Progress }>();

  async function pullTogether(image: string, progress: Progress, signal: AbortSignal): Promise<Provision> {
    const own = { image, progress };
    const report: Progress = (reason) => listeners.forEach((one) => one.image === image && one.progress(reason));
    listeners.add(own);
    return pulls.join(image, signal, (shared) => pull(image, report, shared)).finally(() => listeners.delete(own));
  }

  /** Rejects with the signal's reason if it fires. Then the engine stops the pull. */
  async function pull(image: string, progress: Progress, signal: AbortSignal): Promise<Provision> {
    const registry = registryOf(image);
    const tooLate = AbortSignal.timeout(limitMs);
    const ended = AbortSignal.any([signal, closed, tooLate]);
    let login: RegistryLogin = null;
    try {
      login = await raceSignal(findLogin(configFolder, registry), ended);
      const options = login === null ? {} : { authconfig: login };
      const pulling = call((abortSignal) => docker.pull(image, { ...options, abortSignal }), { signal: ended, limitMs });
      const error = await follow(image, streamed(await pulling, ended), progress, progressMs);
      return error === null ? { kind: 'provided' } : refusedProvision(reasonOfPullError(image, error, registry, login));
    } catch (error) {
      if (ended.aborted && ended.reason === tooLate.reason) {
        return refusedProvision({ code: 'image_pull_timeout', image, limitMs, registry: registryName(registry) });
      }
      ended.throwIfAborted();
      if (statusOf(error) !== null) return refusedProvision(reasonOfPullError(image, messageOf(error), registry, login));
      throw isFailure(error) ? error : unavailable(whyUnreachable(error), error);
    }
  }

  return {
    async provide({ image, runtimeOptions }: SandboxSpec, progress: Progress, signal: AbortSignal): Promise<Provision> {
      signal.throwIfAborted();
      if (image === null) return refusedProvision({ code: 'image_not_named' });
      if (!isImageName(image)) return refusedProvision({ code: 'image_name_invalid', image });
      const options = dockerSpecOptions(runtimeOptions);
      if (options === null) return refusedProvision(invalidDockerOptions);
      const { ociRuntime } = options;
      if (ociRuntime !== null) {
        const available = Object.keys(EngineInfo.parse(await call(() => docker.info(), { signal })).Runtimes ?? {});
        if (!available.includes(ociRuntime)) return refusedProvision({ code: 'isolation_unavailable', name: ociRuntime, available });
      }
      const found = await unlessMissing(call(() => docker.getImage(image).inspect(), { signal }));
      return found === null ? await pullTogether(image, progress, signal) : { kind: 'provided' };
    },
    settled: () => pulls.settled(),
  };
}

function refusedProvision(reason: Reason): Provision {
  return { kind: 'refused', reason };
}

/** Reads the engine's messages to the end. Returns the first error among them. */
async function follow(image: string, response: IncomingMessage, progress: Progress, progressMs: number): Promise<string | null> {
  const layers = new PulledLayers();
  let last: Reason | null = null;
  let lastAt = Number.NEGATIVE_INFINITY;
  let failed: string | null = null;
  for await (const text of linesOf(response)) {
    const message = parseJson(PullMessage, text) ?? {};
    failed ??= message.error ?? null;
    layers.note(message);
    const reason = layers.progress(image);
    if (isSameReason(reason, last) || performance.now() - lastAt < progressMs) continue;
    last = reason;
    lastAt = performance.now();
    progress(reason);
  }
  return failed;
}

/** Returns why the pull failed, and what to do. */
export function reasonOfPullError(image: string, message: string, registry: string, login: RegistryLogin): Reason {
  const named = { image, registry: registryName(registry) };
  const denied = /unauthorized|authentication required|(?<!permission )\bdenied\b|no basic auth|may require 'docker login'/i;
  if (denied.test(message)) return { code: login === null ? 'image_login_required' : 'image_login_refused', ...named };
  const missing = /manifest unknown|not found|does not exist|no such image|invalid reference/i;
  return missing.test(message) ? { code: 'image_not_found', ...named } : { code: 'image_pull_failed', ...named, message: shorten(message) };
}

/** Returns false for an invalid image name, which the engine could take for something else. */
export function isImageName(image: string): boolean {
  return /^[a-z0-9][a-z0-9._:/@-]*$/i.test(image) && !image.includes('..') && !image.includes('//');
}

const dockerHub = 'https://index.docker.io/v1/';

/** Returns the registry of an image, by its name in Docker's configuration. */
export function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return !isHost || first === 'docker.io' || first === 'index.docker.io' ? dockerHub : first;
}

function registryName(registry: string): string {
  return registry === dockerHub ? 'Docker Hub' : registry;
}

const PullMessage = z.object({
  id: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
});

const layerDone = new Set(['Pull complete', 'Already exists']);
const layerWork =
  /^(?:Pulling fs layer|Waiting|Downloading|Verifying Checksum|Download complete|Extracting|Pull complete|Already exists)$/;

/** Sums up the messages about single layers. */
export class PulledLayers {
  readonly #layers = new Map<string, { current: number; total: number; isDone: boolean }>();

  note({ id, status = '', progressDetail }: z.infer<typeof PullMessage>): void {
    if (id === undefined || !layerWork.test(status)) return;
    const layer = this.#layers.get(id) ?? { current: 0, total: 0, isDone: false };
    this.#layers.set(id, layer);
    if (status === 'Downloading') {
      layer.current = progressDetail?.current ?? layer.current;
      layer.total = progressDetail?.total ?? layer.total;
    } else if (status === 'Download complete') layer.current = layer.total;
    if (layerDone.has(status)) layer.isDone = true;
  }

  progress(image: string): Reason {
    const all = [...this.#layers.values()];
    const sum = (key: 'current' | 'total'): number => all.reduce((bytes, layer) => bytes + layer[key], 0);
    const bytes = sum('total') > 0 ? sum('total') : null;
    const doneLayers = all.filter(({ isDone }) => isDone).length;
    return { code: 'pulling_image', image, layers: all.length, doneLayers, bytes, doneBytes: bytes === null ? null : sum('current') };
  }
}

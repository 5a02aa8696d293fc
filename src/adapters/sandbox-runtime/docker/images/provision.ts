import { z } from 'zod';
import type { SandboxSpec } from '../../../../domain/sandbox-spec.ts';
import type { Progress, Provision } from '../../../../ports/sandbox-runtime.ts';
import { createSingleFlight } from '../../../shared/single-flight.ts';
import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';
import { pullImage, type PullOptions } from './pull.ts';
import { whyUnusable } from './reference.ts';

const Runtimes = z.object({ Runtimes: z.record(z.string(), z.unknown()).nullish() });

export interface Provisioning {
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

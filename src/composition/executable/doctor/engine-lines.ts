import type Docker from 'dockerode';
import { z } from 'zod';
import { createClient } from '../../../adapters/sandbox-runtime/docker/engine-client.ts';
import { findEndpoint } from '../../../adapters/sandbox-runtime/docker/engine-address.ts';
import { statusOf } from '../../../adapters/sandbox-runtime/docker/engine.ts';
import { dockerSpecOptions } from '../../../adapters/sandbox-runtime/docker/spec-options.ts';
import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import { note, notOk, ok, type Line } from './line.ts';

const Info = z.object({
  CgroupVersion: z.string().optional(),
  CgroupDriver: z.string().optional(),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  SwapLimit: z.boolean().optional(),
});

/** What an engine that answers has, and what of the specs' needs it lacks. */
export async function engineLines(host: string | undefined, specs: readonly SandboxSpec[]): Promise<Line[]> {
  const client = createClient(findEndpoint(host, process.env));
  const { docker } = client;
  try {
    const version = await docker.version();
    const info = Info.parse(await docker.info());
    const runtimes = Object.keys(info.Runtimes ?? {});
    return [
      ok(`engine ${version.Version}, API ${version.ApiVersion}, cgroup ${info.CgroupVersion ?? 'unknown'} by ${info.CgroupDriver ?? 'unknown'}, OCI runtimes ${runtimes.join(', ')}`),
      ...(info.SwapLimit === false ? [note('engine: its kernel does not limit swap, so a sandbox may swap beyond its memory; boot it with swapaccount=1, or without swap')] : []),
      ...specs.flatMap((spec) => runtimeLine(spec, runtimes)),
      ...(await Promise.all(specs.map((spec) => imageLine(docker, spec)))),
    ];
  } finally {
    client.close();
  }
}

function runtimeLine({ id, runtimeOptions }: SandboxSpec, there: readonly string[]): Line[] {
  const ociRuntime = dockerSpecOptions(runtimeOptions)?.ociRuntime ?? null;
  if (ociRuntime === null) return [];
  if (there.includes(ociRuntime)) return [ok(`spec ${id}: the OCI runtime ${ociRuntime} is there`)];
  return [notOk(`spec ${id}: the engine has no OCI runtime ${ociRuntime}; install it and name it in the engine's daemon.json, or take docker.oci_runtime out of the spec`)];
}

async function imageLine(docker: Docker, { id, image }: SandboxSpec): Promise<Line> {
  if (image === null) return notOk(`spec ${id}: it names no image, and Docker needs one`);
  try {
    const { Size, Architecture } = await docker.getImage(image).inspect();
    return ok(`spec ${id}: image ${image} is there (${Architecture}, ${Math.round(Size / 1e6)} MB)`);
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    return note(`spec ${id}: image ${image} is absent; the first start pulls it, or now: skep pull ${id}`);
  }
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { z } from 'zod';
import { createClient } from '../../adapters/sandbox-runtime/docker/engine-client.ts';
import { statusOf } from '../../adapters/sandbox-runtime/docker/engine.ts';
import { dockerSpecOptions } from '../../adapters/sandbox-runtime/docker/spec-options.ts';
import { commandName } from '../../client/command-name.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SkepConfig } from '../config/file-schema.ts';
import { readDeploymentFile } from '../config/deployment-file.ts';
import { chooseRuntime } from '../config/runtime-choice.ts';
import type { CheckedOptions, DockerRuntimeOptions, ProcessRuntimeOptions } from '../options.ts';
import { createContainer, resolve } from '../create-skep.ts';
import { defaultSpecs } from '../wiring/default-specs.ts';
import { tokens } from '../wiring/tokens.ts';
import { type Line, note, notOk, ok } from './check-line.ts';

/** Returns which runtime serves and why, whether it answers, and what it lacks for the specs. */
export async function runtimeLines(config: SkepConfig): Promise<Line[]> {
  const { options, warnings } = await chooseRuntime(config);
  const chosen = config.sandboxRuntime === 'auto' ? [ok(`runtime ${options.kind}: chosen by SKEP_SANDBOX_RUNTIME=auto`)] : [];
  const lines = [...chosen, ...warnings.map((text) => note(`warning: ${text}`))];
  await using closers = new AsyncDisposableStack();
  const runtime = await resolve(createContainer(existing(config, options), closers), tokens.runtime);
  const { ok: answers, detail } = await runtime.check();
  const answer = `runtime ${runtime.name}: ${detail}`;
  if (options.kind !== 'docker') return [...lines, (answers ? ok : notOk)(answer)];
  const client = createClient(options.host, process.env);
  closers.defer(() => client.close());
  if (!answers) return [...lines, notOk(`${answer} (looked at ${client.shownAddress})`)];
  return [...lines, ok(answer), ...(await engineLines(client.docker, config.specs ?? defaultSpecs({ runtime: options })))];
}

/** Returns options that use what the data folder holds already. A check must not write to it. */
function existing({ dataDir }: SkepConfig, runtime: DockerRuntimeOptions | ProcessRuntimeOptions): CheckedOptions {
  if (runtime.kind === 'docker') return { runtime: { ...runtime, deployment: readDeploymentFile(dataDir)?.id ?? 'doctor' } };
  const root = join(dataDir, 'sandboxes');
  return { runtime: existsSync(root) ? { ...runtime, root } : runtime };
}

const Info = z.object({
  CgroupVersion: z.string().optional(),
  CgroupDriver: z.string().optional(),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  SwapLimit: z.boolean().optional(),
});

const noSwapLimit = 'engine: its kernel does not limit swap, so a sandbox may swap beyond its memory; '
  + 'boot it with swapaccount=1, or without swap';

/** Returns what the engine offers, and what it lacks for the specs. */
async function engineLines(docker: Docker, specs: readonly SandboxSpec[]): Promise<Line[]> {
  const version = await docker.version();
  const info = Info.parse(await docker.info());
  const runtimes = Object.keys(info.Runtimes ?? {});
  const cgroup = `cgroup ${info.CgroupVersion ?? 'unknown'} by ${info.CgroupDriver ?? 'unknown'}`;
  return [
    ok(`engine ${version.Version}, API ${version.ApiVersion}, ${cgroup}, OCI runtimes ${runtimes.join(', ')}`),
    ...(info.SwapLimit === false ? [note(noSwapLimit)] : []),
    ...specs.flatMap((spec) => runtimeLine(spec, runtimes)),
    ...(await Promise.all(specs.map((spec) => imageLine(docker, spec)))),
  ];
}

function runtimeLine({ id, runtimeOptions }: SandboxSpec, known: readonly string[]): Line[] {
  const ociRuntime = dockerSpecOptions(runtimeOptions)?.ociRuntime ?? null;
  if (ociRuntime === null) return [];
  if (known.includes(ociRuntime)) return [ok(`spec ${id}: the OCI runtime ${ociRuntime} is there`)];
  const advice = "install it and name it in the engine's daemon.json, or take docker.oci_runtime out of the spec";
  return [notOk(`spec ${id}: the engine has no OCI runtime ${ociRuntime}; ${advice}`)];
}

async function imageLine(docker: Docker, { id, image }: SandboxSpec): Promise<Line> {
  if (image === null) return notOk(`spec ${id}: it names no image, and Docker needs one`);
  try {
    const { Size, Architecture } = await docker.getImage(image).inspect();
    return ok(`spec ${id}: image ${image} is there (${Architecture}, ${Math.round(Size / 1e6)} MB)`);
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    return note(`spec ${id}: image ${image} is absent; the first start pulls it, or now: ${commandName} pull ${id}`);
  }
}

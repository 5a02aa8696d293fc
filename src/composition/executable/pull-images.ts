import { sandboxSpec, type SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { loadConfig } from '../config/load.ts';
import { dockerOptions } from '../config/runtime-choice.ts';
import { defaultSpecs } from '../wiring/default-specs.ts';

/** Pulls the images that specs (none named: all) need and the engine lacks. Answers 0 when every one is there. */
export async function pull(env: NodeJS.ProcessEnv, ids: readonly string[]): Promise<number> {
  const config = loadConfig(env);
  if (config.sandboxRuntime === 'process') {
    process.stderr.write('skep: the process runtime uses no images; nothing to pull (SKEP_SANDBOX_RUNTIME).\n');
    return 0;
  }
  const specs = (config.specs ?? defaultSpecs({ runtime: dockerOptions(config) })).map(sandboxSpec);
  const unknown = ids.filter((id) => !specs.some((spec) => spec.id === id));
  if (unknown.length > 0) {
    process.stderr.write(`skep: there is no spec ${unknown.join(', ')}; there is ${specs.map(({ id }) => id).join(', ')}.\n`);
    return 1;
  }
  const { kind: _, ...options } = dockerOptions(config);
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  // Nothing of the deployment is touched, so its name does not matter.
  const runtime = createDockerRuntime({ ...options, deployment: 'pull', progressMs: 2_000 });
  try {
    let missing = 0;
    for (const spec of specs.filter(({ id }) => ids.length === 0 || ids.includes(id))) missing += (await pullOne(runtime, spec)) ? 0 : 1;
    return missing === 0 ? 0 : 1;
  } finally {
    await runtime.close();
  }
}

async function pullOne(runtime: Pick<SandboxRuntime, 'provide'>, spec: SandboxSpec): Promise<boolean> {
  const say = (text: string): boolean => process.stdout.write(`${spec.id}: ${text}\n`);
  const provision = await runtime.provide(spec, say, new AbortController().signal);
  say(provision.kind === 'provided' ? `${spec.image} is there` : provision.detail);
  return provision.kind === 'provided';
}

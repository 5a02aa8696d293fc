import { sentenceOf } from '../../adapters/shared/status-and-error-messages.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { defined } from '../config/field-schemas.ts';
import { readConfig } from '../config/read-config.ts';
import { dockerOptions } from '../config/skep-options.ts';
import { defaultSpecs } from '../wiring/default-specs.ts';

/** Pulls the images of the specs, of all specs if none is named. Returns 0 if every image is there. */
export async function pull(env: NodeJS.ProcessEnv, ids: readonly string[]): Promise<number> {
  const config = readConfig(env);
  if (config.sandboxRuntime === 'process') {
    process.stderr.write('skep: the process runtime uses no images; nothing to pull (SKEP_SANDBOX_RUNTIME).\n');
    return 0;
  }
  const specs = config.specs ?? defaultSpecs({ runtime: dockerOptions(config) });
  const unknown = ids.filter((id) => !specs.some((spec) => spec.id === id));
  if (unknown.length > 0) {
    process.stderr.write(`skep: there is no spec ${unknown.join(', ')}; there is ${specs.map(({ id }) => id).join(', ')}.\n`);
    return 1;
  }
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  // The command touches no sandbox, so the deployment's name does not matter.
  const runtime = createDockerRuntime({ ...defined(dockerOptions(config)), deployment: 'pull', progressMs: 2_000 });
  await using open = new AsyncDisposableStack();
  open.defer(() => runtime.close());
  const wanted = specs.filter(({ id }) => ids.length === 0 || ids.includes(id));
  let exitCode = 0;
  for (const spec of wanted) if (!(await pullOne(runtime, spec))) exitCode = 1;
  return exitCode;
}

async function pullOne(runtime: Pick<SandboxRuntime, 'provide'>, spec: SandboxSpec): Promise<boolean> {
  const say = (text: string): boolean => process.stdout.write(`${spec.id}: ${text}\n`);
  const provision = await runtime.provide(spec, (reason) => void say(sentenceOf(reason)), new AbortController().signal);
  say(provision.kind === 'provided' ? `${spec.image} is there` : sentenceOf(provision.reason));
  return provision.kind === 'provided';
}

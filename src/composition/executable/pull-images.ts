import { type JsonOption, print } from '../../adapters/cli/console.ts';
import { inSnakeCase } from '../../adapters/shared/snake-case.ts';
import { sentenceOf } from '../../adapters/shared/failure-sentences.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { neverAborts } from '../../ports/abort-signals.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import { readConfig } from '../config/read-config.ts';
import { dockerOptions } from '../config/runtime-choice.ts';
import { defaultSpecs } from '../wiring/default-specs.ts';

/** Pulls the images of the named specs, or of all specs. Returns 0 if every image is there. */
export async function pull(env: NodeJS.ProcessEnv, ids: readonly string[], options: JsonOption): Promise<number> {
  const config = readConfig(env);
  if (config.sandboxRuntime === 'process') {
    process.stderr.write('skep: There is nothing to pull: the process runtime (SKEP_SANDBOX_RUNTIME) uses no images.\n');
    print(options, [], '');
    return 0;
  }
  const specs = config.specs ?? defaultSpecs({ runtime: dockerOptions(config) });
  const unknown = ids.filter((id) => !specs.some((spec) => spec.id === id));
  if (unknown.length > 0) {
    process.stderr.write(`skep: There is no spec ${unknown.join(', ')}. The specs are ${specs.map(({ id }) => id).join(', ')}.\n`);
    return 1;
  }
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  // The command uses no sandbox, so any deployment name works.
  const runtime = createDockerRuntime({ ...omitUndefined(dockerOptions(config)), deployment: 'pull', progressMs: 2_000 });
  await using open = new AsyncDisposableStack();
  open.defer(() => runtime.close());
  const wanted = specs.filter(({ id }) => ids.length === 0 || ids.includes(id));
  // With JSON, the output contains no progress.
  const output = options.json === true ? process.stderr : process.stdout;
  const pulled: Awaited<ReturnType<typeof pullOne>>[] = [];
  for (const spec of wanted) pulled.push(await pullOne(runtime, spec, output));
  print(options, inSnakeCase(pulled), '');
  return pulled.every(({ reason }) => reason === null) ? 0 : 1;
}

/** Returns the reason why the image is missing; null if it is there. */
async function pullOne(runtime: Pick<SandboxRuntime, 'provide'>, spec: SandboxSpec, output: NodeJS.WriteStream) {
  const report = (text: string): boolean => output.write(`${spec.id}: ${text}\n`);
  const provision = await runtime.provide(spec, (reason) => void report(sentenceOf(reason)), neverAborts);
  report(provision.kind === 'provided' ? `${spec.image} is there` : sentenceOf(provision.reason));
  return { specId: spec.id, image: spec.image, reason: provision.kind === 'provided' ? null : provision.reason };
}

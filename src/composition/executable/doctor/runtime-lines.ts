import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { sandboxSpec } from '../../../domain/sandbox-spec.ts';
import { openRuntime } from '../../wiring/adapters/runtime.ts';
import { choiceFacts } from '../../config/choice-facts.ts';
import type { SkepConfig } from '../../config/config.ts';
import { defaultSpecs } from '../../wiring/default-specs.ts';
import { readDeploymentFile } from '../../config/deployment-file.ts';
import type { DockerRuntimeOptions, ProcessRuntimeOptions } from '../../options.ts';
import { chooseRuntime } from '../../config/runtime-choice.ts';
import { engineLines } from './engine-lines.ts';
import { note, notOk, ok, type Line } from './line.ts';

/** Which runtime serves, why, whether it answers, and what the specs need of it. */
export async function runtimeLines(config: SkepConfig, { hasSandboxes }: { readonly hasSandboxes: boolean }): Promise<Line[]> {
  const { options, warnings } = await chooseRuntime(config, choiceFacts(config, { hasSandboxes }));
  const chosen = config.sandboxRuntime === 'auto' ? [ok(`runtime ${options.kind}: chosen by SKEP_SANDBOX_RUNTIME=auto`)] : [];
  const lines = [...chosen, ...warnings.map((text) => note(`warning: ${text}`))];
  await using closers = new AsyncDisposableStack();
  const runtime = await openRuntime(existing(config, options), closers);
  const { ok: answers, detail } = await runtime.check();
  lines.push((answers ? ok : notOk)(`runtime ${runtime.name}: ${detail}`));
  if (answers && options.kind === 'docker') lines.push(...(await engineLines(options.host, (config.specs ?? defaultSpecs({ runtime: options })).map(sandboxSpec))));
  return lines;
}

/** The options with what the data folder has already, since looking makes nothing. */
function existing({ dataDir }: SkepConfig, runtime: DockerRuntimeOptions | ProcessRuntimeOptions): Parameters<typeof openRuntime>[0] {
  if (runtime.kind === 'docker') return { runtime: { ...runtime, deployment: readDeploymentFile(dataDir)?.id ?? 'doctor' } };
  const root = join(dataDir, 'sandboxes');
  return { runtime: existsSync(root) ? { ...runtime, root } : runtime };
}

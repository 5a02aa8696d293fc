import type { Logger } from '../ports/logger.ts';
import { ConfigError, problemWith, type ConfigProblem } from './config/problem.ts';
import type { SkepConfig } from './config/load.ts';
import { settings } from './config/settings.ts';
import { toGitOptions } from './git-options.ts';
import type { RuntimeOptions, SkepOptions } from './options.ts';

/** What a configuration comes to, and what a person should know about it. */
export interface Deployment {
  readonly options: SkepOptions;
  readonly warnings: readonly string[];
}

/** Makes the options of {@link createSkep} from a configuration. Throws a {@link ConfigError} for what can't be had. */
export function toDeployment(config: SkepConfig, logger: Logger): Deployment {
  const problems: ConfigProblem[] = [];
  const git = config.gitProviders.map((name) => toGitOptions(name, config, problems));
  const runtime = toRuntimeOptions(config, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const options: SkepOptions = {
    git,
    runtime: runtime.options,
    auth: { kind: 'api-keys', ...(config.apiKey !== undefined && { staticKey: config.apiKey }) },
    logger,
    dataDir: config.dataDir,
    product: config.product,
    ...(config.specs !== null && { specs: config.specs }),
    limits: { runningPerOwner: config.limits.runningPerOwner, running: config.limits.running },
  };
  return { options, warnings: [...config.warnings, ...runtime.warnings] };
}

function toRuntimeOptions(
  { sandboxRuntime, host }: SkepConfig,
  problems: ConfigProblem[],
): { readonly options: RuntimeOptions; readonly warnings: readonly string[] } {
  const options: RuntimeOptions = { kind: 'process' };
  const warning = 'sandboxes are plain processes of this machine, without isolation: run only what you trust';
  switch (sandboxRuntime) {
    case 'docker':
      problems.push(problemWith(settings.sandboxRuntime, 'names docker, which this version has no adapter for'));
      return { options, warnings: [] };
    case 'process':
      return { options, warnings: [warning] };
    case 'auto':
      if (isLoopback(host)) return { options, warnings: [warning] };
      problems.push(problemWith(settings.sandboxRuntime, `is auto, which does not choose the process runtime while ${settings.host.variable} is no loopback address, since it has no isolation; set it to process to have it all the same`));
      return { options, warnings: [] };
  }
}

/** Can only programs of this machine reach the address? */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

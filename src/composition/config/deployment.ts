import type { Logger } from '../../ports/logger.ts';
import type { SkepConfig } from './config.ts';
import { ConfigError, type ConfigProblem } from './problem.ts';
import { toGitOptions } from './git-options.ts';
import type { SkepOptions } from '../options.ts';

/**
 * Makes the options of {@link createSkep} from a configuration, without the runtime, which is chosen later. Throws a
 * {@link ConfigError} for what can't be had.
 */
export function toDeployment(config: SkepConfig, logger: Logger): SkepOptions {
  const problems: ConfigProblem[] = [];
  const git = config.gitProviders.map((name) => toGitOptions(name, config, problems));
  if (problems.length > 0) throw new ConfigError(problems);
  const { whenFull, requestsPerMinute: _, ...limits } = config.limits;
  return {
    git,
    auth: { kind: 'api-keys', ...(config.apiKey !== undefined && { staticKey: config.apiKey }) },
    logger,
    dataDir: config.dataDir,
    product: config.product,
    ...(config.specs !== null && { specs: config.specs }),
    limits,
    whenFull,
    ...(config.starts.atOnce !== null && { startsAtOnce: config.starts.atOnce }),
    keepEventsForMs: config.events.keepForMs,
  };
}

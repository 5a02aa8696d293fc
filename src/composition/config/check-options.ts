import { type CheckedOptions, optionsSchema, type SkepOptions } from '../options.ts';
import { ConfigError } from './config-error.ts';
import { fieldName, formAt, mistakesIn } from './mistakes.ts';
import { asksForContainer, conflictsIn } from './spec-conflicts.ts';

/** Throws a {@link ConfigError} with every mistake at once. */
export function checkOptions(options: SkepOptions): CheckedOptions {
  const { runtime = {}, specs } = options;
  const imagesNeeded = typeof runtime === 'object' && 'kind' in runtime && runtime.kind === 'docker';
  const mistakes = [...mistakesIn(optionsSchema, options), ...conflictsIn(specs, { imagesNeeded })];
  if (mistakes.length === 0) {
    const checked = optionsSchema.parse(options);
    const isolated = options.runtime === undefined && options.modules === undefined ? checked.specs?.find(asksForContainer) : undefined;
    if (isolated === undefined) return checked;
    const problem = `is missing, while the spec ${isolated.id} asks for a container; the default, process, would run it on this machine`;
    mistakes.push({ path: ['runtime'], problem });
  }
  throw new ConfigError(mistakes.map(({ path, problem, form = formAt(optionsSchema, path) }) => ({
    name: fieldName(path, specs), problem, form,
  })));
}

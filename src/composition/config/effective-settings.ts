import type { ShownSetting } from '../../adapters/http/routes/overview.ts';
import { inSnakeCase } from '../../adapters/shared/snake-case.ts';
import { durationUnits, formatQuantity, sizeUnits } from '../../client/quantities.ts';
import { maskUrlPasswords } from '../../domain/credentials.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { rulesOf } from '../wiring/use-case-modules.ts';
import { fieldAt } from './field-problems.ts';
import { configSchema, type SkepConfig } from './config-schema.ts';
import { settings } from './settings.ts';

/** Returns the effective settings with their sources, in the order of the documentation. Contains no secret. */
export function effectiveSettings(config: SkepConfig): readonly ShownSetting[] {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const about = (key: string): Pick<ShownSetting, 'key' | 'source' | 'form'> =>
    ({ key, source: config.sources[key] ?? 'default', form: fieldAt(configSchema, [key]).form });
  const own = settings.map(({ key, name, variable, isSecret }): ShownSetting =>
    ({ ...about(key), variable, value: isSecret ? null : shownValue(values[name], fieldAt(configSchema, [key]).unit), isSecret }));
  const ofFile = Object.entries(fileTexts(config)).map(([key, value]): ShownSetting =>
    ({ ...about(key), variable: null, value, isSecret: false }));
  return [...own, ...ofFile];
}

function shownValue(value: unknown, unit: unknown): string | null {
  if (value === undefined) return null;
  if (typeof value === 'number' && unit === 'duration') return formatQuantity(value, durationUnits);
  if (typeof value === 'number' && unit === 'size') return formatQuantity(value, sizeUnits);
  return maskUrlPasswords(Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : JSON.stringify(value));
}

/** Returns the values that only the file can set, as texts. */
function fileTexts(config: SkepConfig): Readonly<Record<string, string>> {
  const { specs, requestsPerMinute, streamsPerKey, connectionsPerSandbox, options } = config;
  const { limits, conversationLimits, executionLimits, whenFull, setupTimeoutMs, keepEventsForMs, quarantineForMs } = rulesOf(options);
  const { startsAtOnce = 'twice the number of cores' } = options;
  const perClient = { requestsPerMinute, streamsPerKey, connectionsPerSandbox };
  const allLimits = Object.entries(inSnakeCase({ ...limits, ...conversationLimits, ...executionLimits, whenFull, ...perClient }));
  return {
    specs: specs === null ? 'the default one' : specs.map(specText).join(', '),
    limits: allLimits.map(([name, value]) => `${name} ${value ?? '-'}`).join(', '),
    starts: `at_once ${startsAtOnce}, setup_timeout ${formatQuantity(setupTimeoutMs, durationUnits)}`,
    events: `keep_for ${formatQuantity(keepEventsForMs, durationUnits)}`,
    quarantine: `keep_for ${formatQuantity(quarantineForMs, durationUnits)}`,
  };
}

function specText({ id, pool, agent }: SandboxSpec): string {
  const extras = [...(pool.size > 0 ? [`pool of ${pool.size}`] : []), ...(agent === null ? [] : [`agent ${agent.command[0]}`])];
  return extras.length === 0 ? id : `${id} (${extras.join(', ')})`;
}

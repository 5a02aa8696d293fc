import type { SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { SkepConfig } from '../../config/config.ts';
import { settings } from '../../config/settings.ts';
import type { Environment } from '../../config/environment.ts';

/** What is configured, and what of it comes from the environment; no secret. */
export function configText(config: SkepConfig, env: Environment): string {
  const values: Readonly<Record<string, unknown>> = { ...config };
  const width = 2 + Math.max(...Object.values(settings).map(({ variable }) => variable.length));
  const line = (name: string, text: string): string => `  ${name.padEnd(width)}${text}\n`;
  const lines = Object.entries(settings).map(([name, { variable, key }]) =>
    line(variable, `${shownValue(values[name], key === null)}${(env[variable] ?? '') === '' ? '' : '   (environment)'}`),
  );
  const { specs, limits, starts, events } = config;
  return [
    ...lines,
    line('specs', specs === null ? 'the ready-made one' : specs.map(specText).join(', ')),
    line('limits', `running_per_owner ${or(limits.runningPerOwner)}, running ${or(limits.running)}, existing_per_owner ${or(limits.existingPerOwner)}, existing ${or(limits.existing)}, when_full ${limits.whenFull}, requests_per_minute ${or(limits.requestsPerMinute)}`),
    line('starts', `at_once ${starts.atOnce ?? 'twice the number of cores'}`),
    line('events', `keep_for ${events.keepForMs / 86_400_000} days`),
  ].join('');
}

const or = (value: number | null): string => (value === null ? '-' : String(value));

function specText({ id, pool, agent }: SandboxSpec): string {
  const extras = [...(pool.size > 0 ? [`pool of ${pool.size}`] : []), ...(agent === null ? [] : [`agent ${agent.command[0]}`])];
  return extras.length === 0 ? id : `${id} (${extras.join(', ')})`;
}

function shownValue(value: unknown, secret: boolean): string {
  if (value === undefined) return '-';
  if (secret) return '(set)';
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value).replace(/^"|"$/g, '');
}

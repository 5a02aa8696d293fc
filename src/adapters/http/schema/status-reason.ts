import { z } from 'zod';
import type { Reason } from '../../../domain/reason.ts';

export const statusReason = z
  .looseObject({ code: z.string().meta({ examples: ['paused_by_owner', 'idle', 'not_ready_in_time', 'failure'] }) })
  .meta({
    id: 'StatusReason',
    description: 'Why, for programs: a code with its data. New codes may come with any version, so expect codes that you do not know.',
  });

/** Returns the reason with the names of its members in snake_case. */
export function presentReason(reason: Reason | null): z.output<typeof statusReason> | null {
  return reason === null ? null : { ...snakeCased(reason), code: reason.code };
}

function snakeCased(data: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [snakeCase(name), valueOf(value)]));
}

function valueOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(valueOf);
  return typeof value === 'object' && value !== null ? snakeCased(value) : value;
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
}

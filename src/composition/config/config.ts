import type { SandboxLimits } from '../../domain/sandbox-limits.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { FileConfig } from './file-schema.ts';
import type { Settings } from './settings.ts';
import { toSandboxSpec } from './spec.ts';

/** The configuration of a server. */
export interface SkepConfig extends Settings {
  /** Null: the ready-made ones. */
  readonly specs: readonly SandboxSpec[] | null;
  readonly limits: SandboxLimits & {
    readonly whenFull: 'refuse' | 'pause_idle';
    readonly requestsPerMinute: number | null;
  };
  /** How many sandboxes are started at a time; null is what the machine bears. */
  readonly starts: { readonly atOnce: number | null };
  readonly events: { readonly keepForMs: number };
  /** What is not wrong, but probably not meant. */
  readonly warnings: readonly string[];
}

const day = 86_400_000;

/** What only the file holds, in the words of the rest. */
export function toFileConfig({ specs, limits, starts, events }: FileConfig): Pick<SkepConfig, 'specs' | 'limits' | 'starts' | 'events'> {
  return {
    specs: specs?.map(toSandboxSpec) ?? null,
    limits: {
      runningPerOwner: limits?.running_per_owner ?? null,
      running: limits?.running ?? null,
      existingPerOwner: limits?.existing_per_owner ?? null,
      existing: limits?.existing ?? null,
      whenFull: limits?.when_full ?? 'refuse',
      requestsPerMinute: limits?.requests_per_minute ?? null,
    },
    starts: { atOnce: starts?.at_once ?? null },
    events: { keepForMs: events?.keep_for ?? 30 * day },
  };
}

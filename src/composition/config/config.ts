import { z } from 'zod';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { SkepOptions } from '../options.ts';
import { duration, positiveInteger } from './field-schemas.ts';
import type { Settings } from './settings.ts';
import { specSchema } from './spec-schema.ts';

const limits = z.strictObject({
  running_per_owner: positiveInteger('5').optional(),
  running: positiveInteger('50').optional(),
  existing_per_owner: positiveInteger('50').optional(),
  existing: positiveInteger('500').optional(),
  when_full: z.enum(['refuse', 'pause_idle']).describe('refuse, or pause_idle to freeze the sandbox that was idle the longest').optional(),
  requests_per_minute: positiveInteger('600').optional(),
}).describe('a mapping of limits, for example { running_per_owner: 5, existing: 500, when_full: refuse }');

/** The keys of the file that are no settings. */
export const fileSchema = z.object({
  specs: z.array(specSchema).min(1).describe('a list of sandbox specs, for example [{ id: node, image: "node:26" }]').optional(),
  limits: limits.optional(),
  starts: z.strictObject({ at_once: positiveInteger('4').optional() })
    .describe('a mapping that says how starts are done, for example { at_once: 4 }').optional(),
  events: z.strictObject({ keep_for: duration('30d').optional() })
    .describe('a mapping that says how events are kept, for example { keep_for: 30d }').optional(),
});

export type FileConfig = z.output<typeof fileSchema>;

/** The configuration of a server. */
export interface SkepConfig extends Settings {
  /** The options of `createSkep`, without the runtime, which is chosen later. */
  readonly options: SkepOptions;
  /** Null: the default ones. */
  readonly specs: readonly SandboxSpec[] | null;
  readonly requestsPerMinute: number | null;
  /** What is allowed, but probably a mistake. */
  readonly warnings: readonly string[];
}

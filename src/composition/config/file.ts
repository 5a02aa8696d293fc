import { z } from 'zod';
import { duration, positiveInteger } from './forms.ts';
import { specSchema } from './spec-schema.ts';

const limits = z.strictObject({
  running_per_owner: positiveInteger.optional(),
  running: positiveInteger.optional(),
  existing_per_owner: positiveInteger.optional(),
  existing: positiveInteger.optional(),
  when_full: z.enum(['refuse', 'pause_idle'], { error: 'is neither refuse nor pause_idle' }).optional(),
  requests_per_minute: positiveInteger.optional(),
});

/** What only the file holds. */
export const fileSchema = z.object({
  specs: z
    .array(specSchema)
    .min(1, 'is empty')
    .refine((specs) => new Set(specs.map(({ id }) => id)).size === specs.length, 'uses an id twice')
    .optional(),
  limits: limits.optional(),
  starts: z.strictObject({ at_once: positiveInteger.optional() }).optional(),
  events: z.strictObject({ keep_for: duration.optional() }).optional(),
});

export type FileConfig = z.output<typeof fileSchema>;

/** What the file's keys take, for the messages. */
export const fileForms: Readonly<Record<keyof FileConfig, string>> = {
  specs: 'a list of sandbox specs, for example [{ id: node, image: "node:26", command: [sh, -c, "exec sleep infinity"], ready: { within: 60s }, resources: { memory: 2GiB } }]',
  limits: 'limits, for example { running_per_owner: 5, running: 50, existing: 500, when_full: refuse, requests_per_minute: 600 }',
  starts: 'how starts are done, for example { at_once: 4 }',
  events: 'how events are kept, for example { keep_for: 30d }',
};

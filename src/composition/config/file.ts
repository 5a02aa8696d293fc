import { z } from 'zod';
import { sandboxSpec } from '../../domain/sandbox-spec-defaults.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import { parseSize } from './quantities.ts';
import { duration } from './settings.ts';

const size = z.string({ error: 'is not a size' }).transform((text, context) => {
  const value = parseSize(text);
  if (value !== null) return value;
  context.addIssue({ code: 'custom', message: 'is not a size' });
  return z.NEVER;
});

const portNumber = z.int('is not a whole number').min(1, 'is below 1').max(65_535, 'is above 65535');
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not the name of a variable');
const label = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'is not a lower-case name of letters, digits and dashes');

const spec = z
  .strictObject({
    id: label,
    description: z.string().optional(),
    image: z.string().min(1, 'is empty').optional(),
    command: z.array(z.string()).min(1, 'is empty').optional(),
    working_dir: z.string().regex(/^\/[^\0]*$/, 'is not an absolute path').optional(),
    initial_env: z.record(variable, z.string({ error: 'is not a text; put numbers and booleans in quotes' })).optional(),
    session_key_env: variable.optional(),
    ports: z.array(z.strictObject({ name: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*$/, 'is not a name'), port: portNumber })).optional(),
    ready: z
      .strictObject({ http: z.string().regex(/^\//, 'does not begin with a slash').optional(), tcp: z.literal(true).optional(), port: portNumber.optional(), within: duration.optional() })
      .optional(),
    resources: z
      .strictObject({ cpus: z.number().positive('is not positive').optional(), memory: size.optional(), pids: z.int('is not a whole number').positive('is not positive').optional() })
      .optional(),
    rest: z.strictObject({ freeze_after: duration.optional(), stop_after: duration.optional(), delete_after: duration.optional() }).optional(),
    pool: z.strictObject({ size: z.int('is not a whole number').min(0, 'is below 0') }).optional(),
  })
  .superRefine(({ ports = [], ready }, context) => {
    const problem = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (new Set(ports.map(({ port }) => port)).size < ports.length) problem(['ports'], 'names a port twice');
    if (new Set(ports.map(({ name }) => name)).size < ports.length) problem(['ports'], 'uses a name twice');
    if (ready === undefined) return;
    if (ready.http !== undefined && ready.tcp !== undefined) problem(['ready'], 'has both http and tcp');
    const probes = ready.http !== undefined || ready.tcp !== undefined;
    if (probes && !ports.some(({ port }) => port === ready.port)) problem(['ready', 'port'], 'is none of the ports of the spec');
  });

const limit = z.int('is not a whole number').positive('is not positive');

/** What only the file holds. */
export const fileSchema = z.object({
  specs: z
    .array(spec)
    .min(1, 'is empty')
    .refine((specs) => new Set(specs.map(({ id }) => id)).size === specs.length, 'uses an id twice')
    .optional(),
  limits: z.strictObject({ running_per_owner: limit.optional(), running: limit.optional(), requests_per_minute: limit.optional() }).optional(),
});

export type FileConfig = z.output<typeof fileSchema>;

/** What the file's keys take, for the messages. */
export const fileForms: Readonly<Record<keyof FileConfig, string>> = {
  specs: 'a list of sandbox specs, for example [{ id: node, command: [sh, -c, "exec sleep 1000"], ready: { within: 60s }, resources: { memory: 2GiB } }]',
  limits: 'limits, for example { running_per_owner: 5, running: 50, requests_per_minute: 600 }',
};

/** The sandbox spec of the file in the words of the domain. */
export function toSandboxSpec(input: NonNullable<FileConfig['specs']>[number]): SandboxSpec {
  const { ready, resources, rest } = input;
  return sandboxSpec({
    id: input.id,
    ...(input.description !== undefined && { description: input.description }),
    ...(input.image !== undefined && { image: input.image }),
    ...(input.command !== undefined && { command: input.command }),
    ...(input.working_dir !== undefined && { workingDir: input.working_dir }),
    ...(input.initial_env !== undefined && { initialEnv: input.initial_env }),
    ...(input.session_key_env !== undefined && { sessionKeyEnv: input.session_key_env }),
    ...(input.ports !== undefined && { ports: input.ports }),
    ready: { probe: toProbe(ready), withinMs: ready?.within ?? 60_000 },
    resources: { cpus: resources?.cpus ?? null, memoryBytes: resources?.memory ?? null, pids: resources?.pids ?? null },
    rest: { freezeAfterMs: rest?.freeze_after ?? null, stopAfterMs: rest?.stop_after ?? null, deleteAfterMs: rest?.delete_after ?? null },
  });
}

type Ready = NonNullable<FileConfig['specs']>[number]['ready'];

function toProbe(ready: Ready): SandboxSpec['ready']['probe'] {
  if (ready?.port === undefined) return { kind: 'none' };
  if (ready.http !== undefined) return { kind: 'http', port: ready.port, path: ready.http };
  return ready.tcp === undefined ? { kind: 'none' } : { kind: 'tcp', port: ready.port };
}

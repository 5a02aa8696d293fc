import { z } from 'zod';
import { permissionPolicies } from '../../domain/agent.ts';
import { duration, orUnlimited, portNumber, positiveInteger, size, variable, variables } from './forms.ts';

const label = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'is not a lower-case name of letters, digits and dashes');
const command = z.array(z.string()).min(1, 'is empty');
const user = z
  .union([z.string(), z.int().nonnegative().transform(String)], { error: 'is not a user' })
  .pipe(z.string().regex(/^\w[\w.-]*(:\w[\w.-]*)?$/, 'is not a user'));

const ready = z.strictObject({
  http: z.string().regex(/^\//, 'does not begin with a slash').optional(),
  tcp: z.literal(true).optional(),
  port: portNumber.optional(),
  within: duration.optional(),
});

const resources = z.strictObject({
  cpus: orUnlimited(z.number('is not a number').positive('is not positive')).optional(),
  memory: orUnlimited(size).optional(),
  pids: orUnlimited(positiveInteger).optional(),
  open_files: orUnlimited(positiveInteger).optional(),
  log: orUnlimited(size).optional(),
});

const isolation = z.strictObject({
  capabilities: z.array(z.string().regex(/^(?!CAP_)[A-Z][A-Z_]*$/, 'is not a capability in upper case, without CAP_')).optional(),
  new_privileges: z.boolean().optional(),
  seccomp: z.enum(['default', 'unconfined'], { error: 'is neither default nor unconfined' }).optional(),
  read_only_root: z.boolean().optional(),
  network: z.enum(['isolated', 'shared', 'none'], { error: 'is none of isolated, shared, none' }).optional(),
  oci_runtime: z.string().regex(/^[\w.-]+$/, 'is not the name of a runtime').optional(),
  user: user.optional(),
});

/** What Skep itself writes down at the engine has this prefix. */
const labels = z.record(z.string().min(1, 'is empty').regex(/^(?!skep\.)/, 'begins with skep., which is reserved'), z.string({ error: 'is not a text; put numbers and booleans in quotes' }));

const rest = z.strictObject({
  freeze_after: duration.optional(),
  stop_after: duration.optional(),
  delete_after: duration.optional(),
  max_life: duration.optional(),
});

const agent = z.strictObject({
  protocol: z.literal('acp', { error: 'is no protocol that Skep speaks' }),
  command,
  env: variables.optional(),
  secrets: z.array(variable).optional(),
  auth_method: z.string().min(1, 'is empty').optional(),
  permissions: z.enum(permissionPolicies, { error: 'is none of allow, ask, deny' }).optional(),
  start_within: duration.optional(),
});

/** A sandbox spec as the file writes it. */
export const specSchema = z
  .strictObject({
    id: label,
    description: z.string().optional(),
    image: z.string().regex(/^[^\s-]\S*$/, 'is not the name of an image').optional(),
    command: command.optional(),
    working_dir: z.string().regex(/^\/[^\0]*$/, 'is not an absolute path').optional(),
    initial_env: variables.optional(),
    session_key_env: variable.optional(),
    ports: z.array(z.strictObject({ name: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*$/, 'is not a name'), port: portNumber })).optional(),
    ready: ready.optional(),
    resources: resources.optional(),
    isolation: isolation.optional(),
    labels: labels.optional(),
    rest: rest.optional(),
    pool: z.strictObject({ size: z.int('is not a whole number').min(0, 'is below 0') }).optional(),
    agent: agent.optional(),
  })
  .superRefine(({ ports = [], ready, isolation }, context) => {
    const problem = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message });
    if (new Set(ports.map(({ port }) => port)).size < ports.length) problem(['ports'], 'names a port twice');
    if (new Set(ports.map(({ name }) => name)).size < ports.length) problem(['ports'], 'uses a name twice');
    if (isolation?.network === 'none' && ports.length > 0) problem(['ports'], 'can not be reached while isolation.network is none');
    if (ready === undefined) return;
    if (ready.http !== undefined && ready.tcp !== undefined) problem(['ready'], 'has both http and tcp');
    const probes = ready.http !== undefined || ready.tcp !== undefined;
    if (probes && !ports.some(({ port }) => port === ready.port)) problem(['ready', 'port'], 'is none of the ports of the spec');
  });

export type SpecConfig = z.output<typeof specSchema>;

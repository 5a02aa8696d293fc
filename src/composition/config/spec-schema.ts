import { z } from 'zod';
import { dockerSpecSchema } from '../../adapters/sandbox-runtime/docker/spec-options.ts';
import { permissionPolicies } from '../../domain/agent.ts';
import { takes } from './form.ts';
import { command, duration, orUnlimited, portNumber, positiveInteger, secretVariable, size, sizeForm, text, truth, variable, variables } from './field-schemas.ts';

const port = takes(
  z.strictObject({
    name: takes(z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*$/, 'is not a name'), 'a name of letters, digits, - and _ that begins with a letter, for example AGENT_SERVER'),
    port: portNumber(),
  }),
  'a mapping of a name and a port, for example { name: AGENT_SERVER, port: 8000 }',
);

const ready = takes(
  z.strictObject({
    http: takes(z.string().regex(/^\//, 'does not begin with a slash'), 'the path of a URL that answers when the sandbox is ready, for example /health').optional(),
    tcp: takes(z.literal(true), 'true, for a sandbox that is ready when its port takes a connection and holds it').optional(),
    port: takes(portNumber(), "one of the spec's ports, which http or tcp asks, for example 8000").optional(),
    within: duration('60s').optional(),
  }),
  'a mapping that says when the sandbox is ready, for example { http: /health, port: 8000, within: 60s }',
);

const resources = takes(
  z.strictObject({
    cpus: orUnlimited(z.number().positive(), 'a number of CPUs above 0, for example 2 or 0.5').optional(),
    memory: orUnlimited(size('2GiB'), sizeForm('2GiB')).optional(),
    pids: orUnlimited(positiveInteger('512'), 'a whole number of processes and threads from 1 on, for example 512').optional(),
    open_files: orUnlimited(positiveInteger('16384'), 'a whole number of open files from 1 on, for example 16384').optional(),
    log: orUnlimited(size('20MiB'), sizeForm('20MiB')).optional(),
  }),
  'a mapping of what a sandbox may take, for example { cpus: 2, memory: 2GiB, pids: 512 }',
);

const user = z
  .union([z.string(), z.int().nonnegative().transform(String)], { error: 'is not a user' })
  .pipe(z.string().regex(/^\w[\w.-]*(:\w[\w.-]*)?$/, 'is not a user'));

const isolation = takes(
  z.strictObject({
    read_only_root: truth('everything but the working directory and /tmp is read-only').optional(),
    network: takes(z.enum(['isolated', 'shared', 'none']), 'isolated (no other sandbox is reached), shared or none').optional(),
    user: takes(user, 'a user of the image, as a name, a number, or user:group, for example "1000:1000"').optional(),
  }),
  'a mapping of what loosens or tightens the isolation, for example { read_only_root: true, network: none, user: "1000" }',
);

const docker = takes(dockerSpecSchema, 'a mapping of what only Docker understands, for example { oci_runtime: runsc }');
const { capabilities, new_privileges: newPrivileges, seccomp, oci_runtime: ociRuntime } = docker.shape;
takes(capabilities, 'a list of Linux capabilities that are kept, in upper case and without CAP_, for example [NET_BIND_SERVICE]');
takes(capabilities.unwrap().element, 'a Linux capability in upper case, without CAP_, for example NET_BIND_SERVICE');
takes(newPrivileges, 'true where a program may gain rights that its parent lacks, or false');
takes(seccomp, 'default or unconfined');
takes(ociRuntime, 'the name of an OCI runtime that the engine has, for example runsc');

/** What Skep itself writes down at the engine has this prefix. */
const labels = takes(
  z.record(z.string().min(1, 'is empty').regex(/^(?!skep\.)/, 'begins with skep., which is reserved'), takes(z.string(), 'a text, for example shop')),
  'a mapping of labels, each a text, for example { team: shop }',
);

const rest = takes(
  z.strictObject({
    freeze_after: duration('15m').optional(),
    stop_after: duration('2h').optional(),
    delete_after: duration('10d').optional(),
    max_life: duration('30d').optional(),
  }),
  'a mapping of durations, for example { freeze_after: 15m, stop_after: 2h, delete_after: 10d, max_life: 30d }',
);

const agent = takes(
  z.strictObject({
    protocol: takes(z.literal('acp', { error: 'is no protocol that Skep speaks' }), 'acp, which is the Agent Client Protocol'),
    command: command('[opencode, acp]'),
    env: variables("a mapping of variables for the agent's process, each a text, for example { MODE: quick }").optional(),
    secrets: takes(
      z.array(secretVariable("the name of a variable, whose value is in the server's environment and not in this file, for example ANTHROPIC_API_KEY")),
      "a list of names of variables, whose values are in the server's environment and not in this file, for example [ANTHROPIC_API_KEY]",
      { secret: true },
    ).optional(),
    auth_method: text("the id of one of the agent's own ways to log in, for example api-key").optional(),
    permissions: takes(z.enum(permissionPolicies), `${permissionPolicies.slice(0, -1).join(', ')} or ${permissionPolicies.at(-1)}`).optional(),
    start_within: duration('60s').optional(),
  }),
  'a mapping that says which agent runs, for example { protocol: acp, command: [opencode, acp], secrets: [ANTHROPIC_API_KEY] }',
);

const pool = takes(
  z.strictObject({ size: takes(z.int().min(0), 'a whole number of sandboxes from 0 on, for example 2') }),
  'a mapping that says how many sandboxes are kept running, for example { size: 2 }',
);

const id = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'is not a lower-case name of letters, digits and dashes');

/** A sandbox spec as the file writes it. */
export const specSchema = takes(
  z.strictObject({
    id: takes(id, 'a name of at most 63 lower-case letters, digits and dashes, for example node-26'),
    description: takes(z.string(), 'a text, for example "Node 26 with git"').optional(),
    image: takes(z.string().regex(/^[^\s-]\S*$/, 'is not the name of an image'), 'the name of an image, for example node:26').optional(),
    command: command('[sh, -c, "exec sleep infinity"]').optional(),
    working_dir: takes(z.string().regex(/^\/[^\0]*$/, 'is not an absolute path'), 'an absolute path inside the sandbox, for example /workspace').optional(),
    initial_env: variables('a mapping of variables, each a text, for example { CI: "1" }').optional(),
    session_key_env: variable("the name of the variable in which a sandbox finds its own key, for example SESSION_API_KEY").optional(),
    ports: takes(z.array(port), 'a list of ports, for example [{ name: AGENT_SERVER, port: 8000 }]').optional(),
    ready: ready.optional(),
    resources: resources.optional(),
    isolation: isolation.optional(),
    docker: docker.optional(),
    labels: labels.optional(),
    rest: rest.optional(),
    pool: pool.optional(),
    agent: agent.optional(),
  }),
  'a sandbox spec, for example { id: node, image: "node:26", command: [sh, -c, "exec sleep infinity"] }',
);

export type SpecConfig = z.output<typeof specSchema>;

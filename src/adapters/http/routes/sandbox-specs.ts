import { z } from 'zod';
import type { Skep } from '../../../application/skep.ts';
import type { DatedSpec } from '../../../application/sandboxes/sandbox-specs.ts';
import type { KeyAccess } from '../../../domain/principal.ts';
import { maskEnv } from '../../../domain/credentials.ts';
import { wakesOnAccess } from '../../../domain/sandbox-spec.ts';
import { timestamp } from '../common-schemas.ts';
import { alias, operation } from '../operation.ts';
import { pageQuery, pageSchema, readPage, unknownPage } from '../page-token.ts';
import { presenter } from '../presenter.ts';
import { invalidRequest } from '../request-input.ts';

const sandboxResources = z
  .object({
    cpus: z.number().nullable(),
    memory_bytes: z.int().nullable(),
    pids: z.int().nullable().describe('Processes and threads.'),
  })
  .meta({ id: 'SandboxResources', description: 'The limits of a sandbox. Null: no limit.' });

const seconds = z.int().nullable();

const sandboxSpecResource = z
  .object({
    id: z.string(),
    description: z.string().nullable(),
    image: z.string().nullable(),
    command: z.array(z.string()).nullable()
      .describe("The program and its arguments. Null: the image's own command. Also null if your key can only read."),
    working_dir: z.string(),
    initial_env: z.record(z.string(), z.string()).describe('Values whose name looks like that of a secret are masked.'),
    allowed_secrets: z.array(z.string()).describe('The names that a start request can have in `secrets`.'),
    ports: z.array(z.object({
      name: z.string(), port: z.int(), public: z.boolean().describe('True: the proxy needs no key for this port.'),
    }).meta({ id: 'SandboxPort' })),
    wake_on_access: z.enum(wakesOnAccess)
      .describe('Which paused sandboxes a request to a port resumes. `freeze`: only frozen ones. `stop`: also stopped ones.'),
    rest: z.object({
      freeze_after_seconds: seconds.describe('Counted from the last activity of a running sandbox.'),
      stop_after_seconds: seconds.describe('Counted from the freeze.'),
      delete_after_seconds: seconds.describe('Counted from the stop.'),
      max_life_seconds: seconds.describe('Counted from its creation, even if it is in use.'),
    }).meta({ id: 'RestRule', description: 'When an idle sandbox is frozen, stopped and deleted. Null: never.' }),
    agent: z.object({ protocol: z.string().meta({ example: 'acp' }) }).meta({ id: 'SandboxAgent' }).nullable()
      .describe('The coding agent of conversations. Null: no agent.'),
    resources: sandboxResources,
    created_at: timestamp,
  })
  .meta({ id: 'SandboxSpec', description: 'A template from which sandboxes are started.' });

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms / 1000);
}

const presentSandboxSpec = presenter(sandboxSpecResource, ({ spec, createdAt }: DatedSpec, access: KeyAccess) => {
  const { command, initialEnv, ports, rest } = spec;
  return {
    ...spec,
    command: access === 'read' ? null : command,
    initialEnv: maskEnv(initialEnv),
    ports: ports.map((port) => ({ ...port, public: port.public ?? false })),
    rest: {
      freezeAfterSeconds: inSeconds(rest.freezeAfterMs),
      stopAfterSeconds: inSeconds(rest.stopAfterMs),
      deleteAfterSeconds: inSeconds(rest.deleteAfterMs),
      maxLifeSeconds: inSeconds(rest.maxLifeMs),
    },
    createdAt,
  };
});

const search = operation('get', '/api/v1/sandbox-specs/search', {
  operationId: 'search_sandbox_specs',
  tag: 'Sandbox specs',
  summary: 'List sandbox specs',
  description: 'In the order of the configuration. The first one is the default.',
  query: z.object(pageQuery),
  success: { status: 200, description: 'A page of sandbox specs.', schema: pageSchema(sandboxSpecResource, 'SandboxSpecPage') },
  failures: [],
  handle: async (context, { query }) => {
    const { skep } = context;
    return await readPage(context, 'sandbox-specs', query, async ({ after, limit }) => {
      if (after !== null && skep.specs.find(after.id) === undefined) throw unknownPage();
      return await skep.specs.search(after?.id ?? null, limit);
    }, (spec) => presentSandboxSpec(spec, context.principal.access));
  },
});

export const sandboxSpecOperations = [search, alias(search, '/api/v1/sandbox-specs', 'list_sandbox_specs')];

/** Returns the spec in the query or the body. Null means the deployment's default. An unknown one in the body is left to the use case. */
export function requestedSpec(skep: Skep, inQuery: string | null, inBody: string | null): string | null {
  if (inQuery !== null && inBody !== null && inQuery !== inBody) {
    throw invalidRequest(['query', 'sandbox_spec_id'], 'must be equal to sandbox_spec_id of the body, or be left out', 'contradiction');
  }
  if (inBody === null && inQuery !== null && skep.specs.find(inQuery) === undefined) {
    throw invalidRequest(['query', 'sandbox_spec_id'], `There is no sandbox spec ${JSON.stringify(inQuery)}`, 'unknown_sandbox_spec');
  }
  return inBody ?? inQuery;
}

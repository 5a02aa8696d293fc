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
    pids: z.int().nullable().meta({ description: 'Processes and threads.' }),
  })
  .meta({ id: 'SandboxResources', description: 'What a sandbox may use; null is no limit.' });

const seconds = z.int().nullable();

const sandboxSpecResource = z
  .object({
    id: z.string(),
    description: z.string().nullable(),
    image: z.string().nullable(),
    command: z.array(z.string()).nullable().meta({
      description: "The program and its arguments; null is the image's own. A key that may only read does not see it.",
    }),
    working_dir: z.string(),
    initial_env: z.record(z.string(), z.string()).meta({ description: 'Values that look secret by their name are masked.' }),
    allowed_secrets: z.array(z.string()).meta({ description: 'Names that a start may have in `secrets`.' }),
    ports: z.array(z.object({
      name: z.string(), port: z.int(), public: z.boolean().meta({ description: 'Anyone may reach it through the proxy.' }),
    }).meta({ id: 'SandboxPort' })),
    wake_on_access: z.enum(wakesOnAccess).meta({
      description: 'Which paused sandboxes a request for a port resumes: none, frozen ones, or stopped ones too.',
    }),
    rest: z.object({
      freeze_after_seconds: seconds.meta({ description: 'From the last activity of a running sandbox.' }),
      stop_after_seconds: seconds.meta({ description: 'From its freeze.' }),
      delete_after_seconds: seconds.meta({ description: 'From its stop.' }),
      max_life_seconds: seconds.meta({ description: 'From its creation to its deletion, whatever it does.' }),
    }).meta({ id: 'RestRule', description: 'What happens to a sandbox without a request; null is never.' }),
    agent: z.object({ protocol: z.string().meta({ example: 'acp' }) }).meta({ id: 'SandboxAgent' }).nullable()
      .meta({ description: 'The coding agent that conversations talk with; null is none.' }),
    resources: sandboxResources,
    created_at: timestamp,
  })
  .meta({ id: 'SandboxSpec', description: 'A template from which sandboxes are started.' });

function inSeconds(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms / 1000);
}

const toSandboxSpec = presenter(sandboxSpecResource);

function presentSandboxSpec({ spec, createdAt }: DatedSpec, access: KeyAccess): z.output<typeof sandboxSpecResource> {
  const { command, initialEnv, ports, rest } = spec;
  return toSandboxSpec({
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
  });
}

const search = operation({
  method: 'get',
  path: '/api/v1/sandbox-specs/search',
  operationId: 'search_sandbox_specs',
  tag: 'Sandbox specs',
  summary: 'List sandbox specs',
  description: "In the deployment's order; the first one is the default.",
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

/** Throws `invalid_request` if the spec does not exist. `place` is the part of the request that names the spec. */
export function requireKnownSpec(skep: Skep, specId: string, place: 'query' | 'body'): void {
  if (skep.specs.find(specId) !== undefined) return;
  throw invalidRequest([place, 'sandbox_spec_id'], `There is no sandbox spec ${JSON.stringify(specId)}`, 'unknown_sandbox_spec');
}

/** Returns the spec in the query or the body. Null means the deployment's default. */
export function requestedSpec(skep: Skep, inQuery: string | null, inBody: string | null): string | null {
  if (inQuery !== null && inBody !== null && inQuery !== inBody) {
    throw invalidRequest(['query', 'sandbox_spec_id'], 'must be that of the body, or be left out', 'contradiction');
  }
  const specId = inBody ?? inQuery;
  if (specId !== null) requireKnownSpec(skep, specId, inBody === null ? 'query' : 'body');
  return specId;
}

import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { defaultAgentTimes } from '../../domain/agent.ts';
import { permissionPolicies } from '../../domain/permission.ts';
import { type ChangeList, fileChangeStatuses, type PullRequest, type StartPoint } from '../../domain/change.ts';
import type { ConversationMicroagent } from '../../domain/applicable-microagents.ts';
import type { QueuedMessage, StartedMessage } from '../../domain/conversation.ts';
import type { Reason } from '../../domain/reason.ts';
import type { SandboxParameters } from '../../domain/sandbox-parameters.ts';
import { sandboxSpec, type SandboxSpec, wakesOnAccess } from '../../domain/sandbox-spec.ts';
import type { ExposedUrl, PausedBy, RefusalBackOff } from '../../domain/sandbox.ts';
import { eventActors } from '../shared/event-data-schemas.ts';
import { orNull } from './record-rows.ts';
import { storeUnavailable } from './database.ts';

/** Parses a JSON column. Throws `store_unavailable` if it does not match the schema. */
export function parseColumn<T>(schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw storeUnavailable({ code: 'damaged' }, error);
  }
}

export function jsonReader<T>(schema: z.ZodType<T>): (text: string) => T {
  return (text) => parseColumn(schema, text);
}

/** Each sweep reads every record, so the texts of some thousand sandboxes with a spec of their own must fit. */
const cachedValues = 10_000;
const cachedCharacters = 4_000_000;

/** Caches the values of recent texts. Texts such as specs repeat, and parsing and validating them costs far more than a lookup. */
export function columnReader<T>(schema: z.ZodType<T>): (text: string) => T {
  const cache = new LRUCache<string, { readonly value: T }>({
    max: cachedValues, maxSize: cachedCharacters, sizeCalculation: (_value, { length }) => length || 1,
  });
  return (text) => {
    const known = cache.get(text);
    if (known !== undefined) return known.value;
    const value = parseColumn(schema, text);
    cache.set(text, { value });
    return value;
  };
}

// The schemas of the JSON columns. The type annotations check each one against its domain type.

const limit = z.number().nullable();

/** The defaults for fields that a spec of an older version does not have. */
const defaults = sandboxSpec({ id: '' });

/** Docker settings that older versions kept in a spec's isolation, with their present names below `docker`. */
const movedToDocker = [
  ['capabilities', 'capabilities'],
  ['newPrivileges', 'new_privileges'],
  ['seccomp', 'seccomp'],
  ['ociRuntime', 'oci_runtime'],
] as const;

const OldIsolation = z.record(z.string(), z.unknown());

/** Converts a spec of an older version to the present form. Returns any other value unchanged. */
function withRuntimeOptions(spec: unknown): unknown {
  if (typeof spec !== 'object' || spec === null || !('isolation' in spec) || 'runtimeOptions' in spec) return spec;
  const isolation = OldIsolation.parse(spec.isolation);
  const moved = movedToDocker.flatMap(([old, name]) => (isolation[old] ? [[name, isolation[old]]] : []));
  return { ...spec, runtimeOptions: { docker: Object.fromEntries(moved) } };
}

const Spec = z.object({
  id: z.string(),
  description: z.string().nullable(),
  image: z.string().nullable(),
  command: z.array(z.string()).nullable(),
  workingDir: z.string(),
  initialEnv: z.record(z.string(), z.string()),
  secrets: z.array(z.string()).default([]),
  allowedSecrets: z.array(z.string()).default([]),
  allowPlainSecrets: z.boolean().default(false),
  sessionKeyEnv: z.string(),
  ports: z.array(z.object({
    name: z.string(), port: z.number(), public: z.boolean().optional(), wantsSessionKey: z.boolean().optional(),
    keepsPrefix: z.boolean().optional(),
  })),
  wakeOnAccess: z.enum(wakesOnAccess).default(defaults.wakeOnAccess),
  ready: z.object({
    probe: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('none') }),
      z.object({ kind: z.literal('tcp'), port: z.number() }),
      z.object({ kind: z.literal('http'), port: z.number(), path: z.string() }),
    ]),
    withinMs: z.number(),
  }),
  resources: z.object({
    cpus: limit,
    memoryBytes: limit,
    pids: limit,
    openFiles: limit.default(defaults.resources.openFiles),
    logBytes: limit.default(defaults.resources.logBytes),
    diskBytes: limit.default(defaults.resources.diskBytes),
  }),
  isolation: z
    .object({
      readOnlyRoot: z.boolean(),
      network: z.enum(['isolated', 'shared', 'none']),
      user: z.string().nullable(),
    })
    .default(() => defaults.isolation),
  runtimeOptions: z.record(z.string(), z.unknown()).default(() => defaults.runtimeOptions),
  labels: z.record(z.string(), z.string()).default(() => defaults.labels),
  rest: z.object({
    freezeAfterMs: limit,
    stopAfterMs: limit,
    deleteAfterMs: limit,
    maxLifeMs: limit.default(defaults.rest.maxLifeMs),
  }),
  pool: z.object({ size: z.number() }).default(defaults.pool),
  agent: z
    .object({
      protocol: z.string(),
      command: z.array(z.string()),
      env: z.record(z.string(), z.string()),
      secrets: z.array(z.string()),
      permissions: z.enum(permissionPolicies),
      authMethod: z.string().nullable(),
      startWithinMs: z.number(),
      turnTimeoutMs: z.number().default(defaultAgentTimes.turnTimeoutMs),
      permissionTimeoutMs: z.number().default(defaultAgentTimes.permissionTimeoutMs),
    })
    .nullable()
    .default(null),
});

export const SpecColumn: z.ZodType<SandboxSpec> = z.preprocess(withRuntimeOptions, Spec);

/** From names to texts. */
export const TextMapColumn = z.record(z.string(), z.string());

export const SandboxParametersColumn: z.ZodType<SandboxParameters> = z.object({
  env: TextMapColumn.optional(),
  metadata: TextMapColumn.optional(),
  timeoutMs: z.number().optional(),
  resources: z.object({ cpus: z.number(), memoryBytes: z.number(), pids: z.number() }).partial().optional(),
  secrets: z.array(z.string()).optional(),
});

export const ExposedUrlsColumn: z.ZodType<readonly ExposedUrl[]> = z.array(
  z.object({ name: z.string(), url: z.string(), port: z.number() }),
);

const QueuedMessageColumn = z.object({
  messageId: z.string(),
  message: z.object({ content: z.array(z.object({ type: z.literal('text'), text: z.string() })) }),
  sandboxVersion: z.number().default(0),
});

export const StartedMessageColumn: z.ZodType<StartedMessage> = z.object({
  ...QueuedMessageColumn.shape,
  agent: z.object({
    sessionId: z.string(),
    requestId: z.number(),
    stdin: z.number(),
    stdout: z.number(),
    from: z.number(),
    context: z.string().nullable(),
  }).optional(),
  cancelled: z.boolean().optional(),
  cancelledBy: z.string().optional(),
  unprompted: z.boolean().optional(),
});

export const QueueColumn: z.ZodType<readonly QueuedMessage[]> = z.array(QueuedMessageColumn);

export const StartPointColumn: z.ZodType<StartPoint> = z.object({ commit: z.string().nullable(), branch: z.string().nullable() });

export const PossibleTipsColumn = z.record(z.string(), z.array(z.string()));

export const ChangeListColumn: z.ZodType<ChangeList> = z.object({
  head: z.string().nullable(),
  complete: z.boolean(),
  commits: z.array(z.object({
    commit: z.string(), authorName: z.string(), authorEmail: z.string(), committedAt: z.number(), subject: z.string(),
  })),
  files: z.array(z.object({
    path: z.string(),
    status: z.enum(fileChangeStatuses),
    oldPath: z.string().nullable(),
    oldMode: z.string().nullable(),
    mode: z.string().nullable(),
    binary: z.boolean(),
    added: z.number().nullable(),
    removed: z.number().nullable(),
    committed: z.boolean(),
  })),
});

export const MicroagentsColumn: z.ZodType<readonly ConversationMicroagent[]> = z.array(
  z.object({ path: z.string(), blobId: z.string(), triggers: z.array(z.string()), isSettled: z.boolean() }),
);

export const PullRequestsColumn: z.ZodType<Readonly<Record<string, PullRequest>>> = z.record(
  z.string(), z.object({ number: z.number(), url: z.string() }),
);

export const TextsColumn: z.ZodType<readonly string[]> = z.array(z.string());

/** Keeps a reason of a later version, although its code is unknown here. */
const ReasonColumn: z.ZodType<Reason> = z
  .looseObject({ code: z.string() })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this program wrote it, and its readers accept an unknown code
  .transform((reason) => reason as unknown as Reason);

export const reasonOrNull = orNull(jsonReader(ReasonColumn));

export const RefusedColumn: z.ZodType<RefusalBackOff> = z.object({ times: z.number(), retryAt: z.number() });

export const PausedByColumn: z.ZodType<PausedBy> = z.object({
  actor: z.enum(eventActors),
  reason: ReasonColumn.nullable(),
  version: z.number(),
  since: z.number().optional(),
  hasFailed: z.literal(true).optional(),
});

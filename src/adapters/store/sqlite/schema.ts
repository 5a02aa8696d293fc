import { z } from 'zod';
import { permissionPolicies, type PermissionRequest } from '../../../domain/agent.ts';
import type { QueuedMessage } from '../../../domain/conversation.ts';
import { sandboxSpec, type SandboxSpec } from '../../../domain/sandbox-spec.ts';
import type { ExposedUrl } from '../../../domain/sandbox.ts';

// What is kept as JSON in a column. The annotations hold each schema to its domain type.

const limit = z.number().nullable();

/** Settings of Docker that older versions kept in a spec's isolation, and their names below `docker`. */
const movedToDocker = [
  ['capabilities', 'capabilities'],
  ['newPrivileges', 'new_privileges'],
  ['seccomp', 'seccomp'],
  ['ociRuntime', 'oci_runtime'],
] as const;

const OldIsolation = z.record(z.string(), z.unknown());

/** Returns a spec of an older version in its present form, and any other value as it is. */
function withRuntimeOptions(spec: unknown): unknown {
  if (typeof spec !== 'object' || spec === null || !('isolation' in spec) || 'runtimeOptions' in spec) return spec;
  const isolation = OldIsolation.parse(spec.isolation);
  const moved = movedToDocker.flatMap(([old, name]) => (isolation[old] ? [[name, isolation[old]]] : []));
  return { ...spec, runtimeOptions: { docker: Object.fromEntries(moved) } };
}

/** What a spec says that was written before specs could say it. */
const unsaid = sandboxSpec({ id: '' });

const Spec = z.object({
  id: z.string(),
  description: z.string().nullable(),
  image: z.string().nullable(),
  command: z.array(z.string()).nullable(),
  workingDir: z.string(),
  initialEnv: z.record(z.string(), z.string()),
  sessionKeyEnv: z.string(),
  ports: z.array(z.object({ name: z.string(), port: z.number() })),
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
    openFiles: limit.default(unsaid.resources.openFiles),
    logBytes: limit.default(unsaid.resources.logBytes),
  }),
  isolation: z
    .object({
      readOnlyRoot: z.boolean(),
      network: z.enum(['isolated', 'shared', 'none']),
      user: z.string().nullable(),
    })
    .default(() => unsaid.isolation),
  runtimeOptions: z.record(z.string(), z.unknown()).default(() => unsaid.runtimeOptions),
  labels: z.record(z.string(), z.string()).default(() => unsaid.labels),
  rest: z.object({
    freezeAfterMs: limit,
    stopAfterMs: limit,
    deleteAfterMs: limit,
    maxLifeMs: limit.default(unsaid.rest.maxLifeMs),
  }),
  pool: z.object({ size: z.number() }).default(unsaid.pool),
  agent: z
    .object({
      protocol: z.literal('acp'),
      command: z.array(z.string()),
      env: z.record(z.string(), z.string()),
      secrets: z.array(z.string()),
      permissions: z.enum(permissionPolicies),
      authMethod: z.string().nullable(),
      startWithinMs: z.number(),
    })
    .nullable()
    .default(null),
});

export const SpecColumn: z.ZodType<SandboxSpec> = z.preprocess(withRuntimeOptions, Spec);

export const ExposedUrlsColumn: z.ZodType<readonly ExposedUrl[]> = z.array(
  z.object({ name: z.string(), url: z.string(), port: z.number() }),
);

export const QueuedMessageColumn: z.ZodType<QueuedMessage> = z.object({
  messageId: z.string(),
  message: z.object({ content: z.array(z.object({ type: z.literal('text'), text: z.string() })) }),
});

export const QueueColumn: z.ZodType<readonly QueuedMessage[]> = z.array(QueuedMessageColumn);

export const PermissionColumn: z.ZodType<PermissionRequest> = z.object({
  permissionId: z.string(),
  toolCallId: z.string(),
  title: z.string(),
  options: z.array(
    z.object({
      optionId: z.string(),
      name: z.string(),
      kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
    }),
  ),
});

export const PathsColumn: z.ZodType<readonly string[]> = z.array(z.string());

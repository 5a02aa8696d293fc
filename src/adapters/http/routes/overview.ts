import { freemem, totalmem } from 'node:os';
import { z } from 'zod';
import type { Overview } from '../../../application/overview/get-overview.ts';
import { type Conversation, conversationStartStatuses, agentStatuses } from '../../../domain/conversation.ts';
import { usedPercentOf } from '../../../domain/disk-pressure.ts';
import { quarantineOwner } from '../../../domain/quarantine.ts';
import { type Sandbox, sandboxStatuses } from '../../../domain/sandbox.ts';
import type { InCamelCase } from '../../shared/snake-case.ts';
import { presentReason, statusFields, statusFieldsOf, statusReason, timestamp } from '../common-schemas.ts';
import { operation } from '../operation.ts';
import { presenter } from '../presenter.ts';
import type { RequestContext } from '../request-context.ts';
import { partReadiness, type ReadinessReport } from './health-and-service.ts';

const count = z.int().min(0);
const bytes = z.int().min(0);

function countSchema<W extends string>(words: readonly W[]) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is a field for each of the words
  return z.object(Object.fromEntries(words.map((word) => [word, count])) as Record<W, typeof count>);
}

const problem = z.object({
  kind: z.enum(['sandbox', 'conversation']),
  id: z.string(),
  user_id: z.string(),
  sandbox_spec_id: z.string(),
  title: z.string().nullable().describe('The title of a conversation; null for a sandbox.'),
  status: z.enum([...new Set([...sandboxStatuses, ...conversationStartStatuses])])
    .describe('The status of the sandbox, or the step that the start of the conversation has reached.'),
  ...statusFields,
  since: timestamp.describe('When the sandbox got this status, or when the conversation was last changed.'),
}).meta({ id: 'OverviewProblem', description: 'A sandbox or conversation that failed, or that takes more than a minute to start.' });

const starts = z.object({
  since: timestamp.describe('The counts begin here: an hour ago, at the start of this server, or later after more than 2,000 starts.'),
  succeeded: count,
  failed: count,
  from_pool: count.describe('How many of the successful starts used a sandbox from a pool.'),
  p50_ms: z.number().nullable().describe('The time from the request until RUNNING. Null if no start succeeded.'),
  p95_ms: z.number().nullable(),
}).meta({ id: 'OverviewStarts' });

const limit = z.object({
  limit: z.string().meta({ example: 'running_per_owner' }),
  max: z.int().nullable().describe('Null is no limit.'),
  used: count,
  user_id: z.string().nullable().describe('For a limit per owner: the owner that is nearest to the limit.'),
}).meta({ id: 'OverviewLimit' });

const upcoming = z.object({
  sandbox_id: z.string(),
  user_id: z.string(),
  sandbox_spec_id: z.string(),
  action: z.enum(['freeze', 'stop', 'delete']),
  at: timestamp,
  reason: statusReason,
}).meta({ id: 'UpcomingAction', description: 'What the idle policy will do if nobody uses the sandbox before.' });

const pool = z.object({
  sandbox_spec_id: z.string(),
  target: count,
  running: count,
  starting: count,
  hits: count.describe('Starts that found a sandbox in the pool, since this server started.'),
  misses: count.describe('Starts that found the pool empty, since this server started.'),
  failure_detail: z.string().nullable().describe('Why the last sandbox of the pool was lost. Null if one started since.'),
  failure_reason: statusReason.nullable(),
}).meta({ id: 'OverviewPool' });

const deployment = z.object({
  pools: z.array(pool),
  disk: z.object({ total_bytes: bytes, free_bytes: bytes, used_percent: z.number(), limit_percent: z.number() }).nullable()
    .describe('The disk of the sandboxes, at the last sweep. Null if the runtime does not know it.'),
  memory: z.object({
    server_bytes: bytes.describe('The memory of the server process.'),
    machine_free_bytes: bytes.describe('The free memory of the machine of the server.'),
    machine_total_bytes: bytes,
    agents_held_bytes: bytes.describe("The agents' output that is kept in memory."),
    agents_max_bytes: bytes,
  }),
}).meta({ id: 'OverviewDeployment' });

const overview = z.object({
  at: timestamp,
  scope: z.enum(['all', 'own']).describe('`all`: everything, for an administrator. `own`: only what your user owns.'),
  sandboxes: z.object({ by_status: countSchema(sandboxStatuses), in_quarantine: count }),
  conversations: z.object({
    by_start_status: countSchema(conversationStartStatuses),
    by_execution_status: countSchema(agentStatuses).describe('Only conversations with an agent.'),
  }).describe('Without archived ones.'),
  problems: z.array(problem).describe('The newest 20 sandboxes and the newest 20 conversations.'),
  starts,
  limits: z.array(limit),
  upcoming: z.array(upcoming).describe('The next 20, the soonest first, as of the last sweep.'),
  parts: z.array(partReadiness).describe('The same parts as in `/ready`. Only an administrator gets details.'),
  deployment: deployment.nullable().describe('For administrators only.'),
}).meta({ id: 'Overview', description: 'An overview of the state of the deployment.' });

function sumByWord<W extends string, C extends { readonly count: number }>(
  words: readonly W[], counted: readonly C[], wordOf: (counted: C) => W | null,
): Record<W, number> {
  const sums = words.map((word) => [word, sumOf(counted.filter((one) => wordOf(one) === word))]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is a sum for each of the words
  return Object.fromEntries(sums) as Record<W, number>;
}

function sumOf(counted: readonly { readonly count: number }[]): number {
  return counted.reduce((sum, { count }) => sum + count, 0);
}

function sandboxProblem({ id, ownerId: userId, spec, status, statusReason, statusSince }: Sandbox) {
  const kind = 'sandbox' as const;
  return { kind, id, userId, sandboxSpecId: spec.id, title: null, status, ...statusFieldsOf(statusReason), since: statusSince };
}

function conversationProblem({ ownerId: userId, startStatus, statusReason, updatedAt, ...same }: Conversation) {
  const kind = 'conversation' as const;
  return { ...same, kind, userId, status: startStatus, ...statusFieldsOf(statusReason), since: updatedAt };
}

function deploymentOf({ pools, disk, diskUsedPercent, agentMemory }: NonNullable<Overview['deployment']>) {
  return {
    pools: pools.map(({ specId: sandboxSpecId, lastFailure, ...same }) => {
      const { statusDetail: failureDetail, statusReason: failureReason } = statusFieldsOf(lastFailure);
      return { ...same, sandboxSpecId, failureDetail, failureReason };
    }),
    disk: disk === null ? null : { ...disk, usedPercent: usedPercentOf(disk), limitPercent: diskUsedPercent },
    memory: {
      serverBytes: process.memoryUsage.rss(),
      machineFreeBytes: freemem(),
      machineTotalBytes: totalmem(),
      agentsHeldBytes: agentMemory.heldBytes,
      agentsMaxBytes: agentMemory.maxBytes,
    },
  };
}

const toOverview = presenter(overview.omit({ sandboxes: true, conversations: true }));

function presentOverview(seen: Overview, parts: ReadinessReport['parts'], isAll: boolean): z.output<typeof overview> {
  const owned = seen.sandboxes.filter(({ ownerId }) => ownerId !== quarantineOwner);
  const { conversations } = seen;
  return {
    ...toOverview({
      ...seen,
      scope: isAll ? 'all' : 'own',
      problems: [...seen.failedOrSlowSandboxes.map(sandboxProblem), ...seen.failedOrSlowConversations.map(conversationProblem)],
      limits: seen.limits.map(({ ownerId: userId, ...same }) => ({ ...same, userId })),
      upcoming: seen.upcoming.map(({ sandbox, action: { tier: action, at, reason } }) => (
        { sandboxId: sandbox.id, userId: sandbox.ownerId, sandboxSpecId: sandbox.spec.id, action, at, reason: presentReason(reason) }
      )),
      parts,
      deployment: seen.deployment === null ? null : deploymentOf(seen.deployment),
    }),
    sandboxes: {
      by_status: sumByWord(sandboxStatuses, owned, ({ status }) => status),
      in_quarantine: sumOf(seen.sandboxes) - sumOf(owned),
    },
    conversations: {
      by_start_status: sumByWord(conversationStartStatuses, conversations, ({ startStatus }) => startStatus),
      by_execution_status: sumByWord(agentStatuses, conversations, ({ executionStatus }) => executionStatus),
    },
  };
}

/** Returns the overview of what the caller may see. */
export async function readOverview({ skep, principal, http }: RequestContext): Promise<z.output<typeof overview>> {
  const isAll = principal.access === 'admin';
  const [seen, { parts }] = await Promise.all([skep.overview(principal), http.readiness({ isDetailed: isAll })]);
  return presentOverview(seen, parts, isAll);
}

const setting = z.object({
  key: z.string().meta({ example: 'git_timeout' }),
  variable: z.string().nullable()
    .meta({ description: 'The environment variable. Null if only the configuration file can set it.', example: 'SKEP_GIT_TIMEOUT' }),
  source: z.enum(['environment', 'file', 'default']),
  value: z.string().nullable().describe('As a text for people. Null if there is none, and always null for a secret.'),
  is_secret: z.boolean(),
  form: z.string().describe('Which values are allowed, as a text for people.'),
}).meta({ id: 'Setting' });

/** A setting in the form that administrators see. */
export type ShownSetting = Readonly<InCamelCase<z.output<typeof setting>>>;

const settingList = z.object({ items: z.array(setting) }).meta({ id: 'SettingList' });

const common = { tag: 'Overview', failures: [] } as const;

export const overviewOperations = [
  operation('get', '/api/v1/overview', {
    ...common,
    operationId: 'get_overview',
    summary: 'Get the state of the deployment',
    description: 'What runs, what is paused and what fails, and why. The request is cheap: it can be sent every few seconds.',
    success: { status: 200, description: 'The overview.', schema: overview },
    handle: readOverview,
  }),
  operation('get', '/api/v1/settings', {
    ...common,
    adminOnly: true,
    operationId: 'list_settings',
    summary: 'List the settings of the server',
    description: "Needs an administrator's key. The values of secrets are not shown, only whether they are set.",
    success: { status: 200, description: 'The settings.', schema: settingList },
    handle: ({ http }) => presenter(settingList)({ items: http.options.settings ?? [] }),
  }),
];

import { freemem, totalmem } from 'node:os';
import { z } from 'zod';
import type { Overview } from '../../../application/overview/get-overview.ts';
import type { Conversation } from '../../../domain/conversation.ts';
import { conversationStartStatuses, executionStatuses } from '../../../domain/conversation.ts';
import { usedPercentOf } from '../../../domain/disk-pressure.ts';
import { quarantineOwner } from '../../../domain/quarantine.ts';
import { type Sandbox, sandboxStatuses } from '../../../domain/sandbox.ts';
import { presentStatus, statusFields, statusReason, timestamp, toTimestamp } from '../common-schemas.ts';
import { noInput, operation } from '../operation.ts';
import { partReadiness, type ReadinessReport } from './service.ts';

const count = z.int().min(0);
const bytes = z.int().min(0);

function countsOf<W extends string>(words: readonly W[]) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is a field for each of the words
  return z.object(Object.fromEntries(words.map((word) => [word, count])) as Record<W, typeof count>);
}

const problem = z.object({
  kind: z.enum(['sandbox', 'conversation']),
  id: z.string(),
  user_id: z.string(),
  sandbox_spec_id: z.string(),
  title: z.string().nullable().meta({ description: 'Of a conversation.' }),
  status: z.enum([...new Set([...sandboxStatuses, ...conversationStartStatuses])])
    .meta({ description: 'The status of the sandbox, or how far the start of the conversation has come.' }),
  ...statusFields,
  since: timestamp.meta({ description: 'When a sandbox got its status, and when a conversation was last changed.' }),
}).meta({ id: 'OverviewProblem', description: 'What failed, or takes more than a minute to start.' });

const starts = z.object({
  since: timestamp.meta({ description: 'This server counts its own starts: those of the last hour, and none from before it began.' }),
  succeeded: count,
  failed: count,
  from_pool: count.meta({ description: 'How many of the successful ones came from a pool.' }),
  p50_ms: z.number().nullable().meta({ description: 'From the request until RUNNING. Null if there was no successful start.' }),
  p95_ms: z.number().nullable(),
}).meta({ id: 'OverviewStarts' });

const limit = z.object({
  limit: z.string().meta({ example: 'running_per_owner' }),
  max: z.int().nullable().meta({ description: 'Null is no limit.' }),
  used: count,
  user_id: z.string().nullable().meta({ description: 'For a limit per owner: the one who is nearest to it.' }),
}).meta({ id: 'OverviewLimit' });

const upcoming = z.object({
  sandbox_id: z.string(),
  user_id: z.string(),
  sandbox_spec_id: z.string(),
  action: z.enum(['freeze', 'stop', 'delete']),
  at: timestamp,
  reason: statusReason,
}).meta({ id: 'UpcomingAction', description: 'What the idle policy does if nobody uses the sandbox until then.' });

const pool = z.object({
  sandbox_spec_id: z.string(),
  target: count,
  running: count,
  starting: count,
  hits: count.meta({ description: 'Starts that got a member, since this server began.' }),
  misses: count.meta({ description: 'Starts that found none, since this server began.' }),
  failure_detail: z.string().nullable().meta({ description: 'Why a member was lost last; null if one has run since.' }),
  failure_reason: statusReason.nullable(),
}).meta({ id: 'OverviewPool' });

const deployment = z.object({
  pools: z.array(pool),
  disk: z.object({ total_bytes: bytes, free_bytes: bytes, used_percent: z.number(), limit_percent: z.number() }).nullable()
    .meta({ description: 'Where the sandboxes are, at the last sweep. Null if the runtime does not know.' }),
  memory: z.object({
    server_bytes: bytes.meta({ description: 'What the process of this server holds.' }),
    machine_free_bytes: bytes.meta({ description: 'Of the machine of this server.' }),
    machine_total_bytes: bytes,
    agents_held_bytes: bytes.meta({ description: 'What agents said that is held in memory.' }),
    agents_max_bytes: bytes,
  }),
}).meta({ id: 'OverviewDeployment' });

const overview = z.object({
  at: timestamp,
  scope: z.enum(['all', 'own']).meta({ description: 'Whose: that of all users for an administrator, otherwise of the own user.' }),
  sandboxes: z.object({ by_status: countsOf(sandboxStatuses), in_quarantine: count }),
  conversations: z.object({
    by_start_status: countsOf(conversationStartStatuses),
    by_execution_status: countsOf(executionStatuses).meta({ description: 'Of those with an agent.' }),
  }).meta({ description: 'Without archived ones.' }),
  problems: z.array(problem).meta({ description: 'The newest 20 sandboxes and the newest 20 conversations.' }),
  starts,
  limits: z.array(limit),
  upcoming: z.array(upcoming).meta({ description: 'The next 20 of the sandboxes that were there at the last sweep, the soonest first.' }),
  parts: z.array(partReadiness).meta({ description: 'The store, the runtime, the git providers. An administrator sees details.' }),
  deployment: deployment.nullable().meta({ description: 'For administrators only.' }),
}).meta({ id: 'Overview', description: 'The state of the deployment at a glance.' });

function tally<W extends string>(
  words: readonly W[], counted: readonly { readonly word: W | null; readonly count: number }[],
): Record<W, number> {
  const sums = words.map((word) => [word, counted.filter((one) => one.word === word).reduce((sum, { count }) => sum + count, 0)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is a sum for each of the words
  return Object.fromEntries(sums) as Record<W, number>;
}

function presentSandboxProblem({ id, ownerId, spec, status, statusReason, statusSince }: Sandbox): z.output<typeof problem> {
  const since = toTimestamp(statusSince);
  return { kind: 'sandbox', id, user_id: ownerId, sandbox_spec_id: spec.id, title: null, status, ...presentStatus(statusReason), since };
}

function presentConversationProblem(conversation: Conversation): z.output<typeof problem> {
  const { id, ownerId, sandboxSpecId, title, startStatus, statusReason, updatedAt } = conversation;
  return {
    kind: 'conversation', id, user_id: ownerId, sandbox_spec_id: sandboxSpecId, title, status: startStatus,
    ...presentStatus(statusReason), since: toTimestamp(updatedAt),
  };
}

function presentDeployment(seen: NonNullable<Overview['deployment']>): z.output<typeof deployment> {
  const { pools, disk, diskUsedPercent, agentMemory } = seen;
  return {
    pools: pools.map(({ specId, lastFailure, ...same }) => {
      const { status_detail, status_reason } = presentStatus(lastFailure);
      return { sandbox_spec_id: specId, ...same, failure_detail: status_detail, failure_reason: status_reason };
    }),
    disk: disk === null ? null : {
      total_bytes: disk.totalBytes, free_bytes: disk.freeBytes, used_percent: usedPercentOf(disk), limit_percent: diskUsedPercent,
    },
    memory: {
      server_bytes: process.memoryUsage.rss(),
      machine_free_bytes: freemem(),
      machine_total_bytes: totalmem(),
      agents_held_bytes: agentMemory.heldBytes,
      agents_max_bytes: agentMemory.maxBytes,
    },
  };
}

function presentStarts({ since, succeeded, failed, fromPool, p50Ms, p95Ms }: Overview['starts']): z.output<typeof starts> {
  return { since: toTimestamp(since), succeeded, failed, from_pool: fromPool, p50_ms: p50Ms, p95_ms: p95Ms };
}

function presentOverview(seen: Overview, parts: ReadinessReport['parts'], isAll: boolean): z.output<typeof overview> {
  const owned = seen.sandboxes.filter(({ ownerId }) => ownerId !== quarantineOwner);
  const total = seen.sandboxes.reduce((sum, { count }) => sum + count, 0);
  return {
    at: toTimestamp(seen.at),
    scope: isAll ? 'all' : 'own',
    sandboxes: {
      by_status: tally(sandboxStatuses, owned.map(({ status, count }) => ({ word: status, count }))),
      in_quarantine: total - owned.reduce((sum, { count }) => sum + count, 0),
    },
    conversations: {
      by_start_status: tally(conversationStartStatuses, seen.conversations.map(({ startStatus, count }) => ({ word: startStatus, count }))),
      by_execution_status: tally(executionStatuses,
        seen.conversations.map(({ executionStatus, count }) => ({ word: executionStatus, count }))),
    },
    problems: [...seen.troubledSandboxes.map(presentSandboxProblem), ...seen.troubledConversations.map(presentConversationProblem)],
    starts: presentStarts(seen.starts),
    limits: seen.limits.map(({ ownerId, ...same }) => ({ ...same, user_id: ownerId })),
    upcoming: seen.upcoming.map(({ sandbox, action: { tier, at, reason } }) => ({
      sandbox_id: sandbox.id, user_id: sandbox.ownerId, sandbox_spec_id: sandbox.spec.id, action: tier, at: toTimestamp(at),
      reason: { ...presentStatus(reason).status_reason, code: reason.code },
    })),
    parts,
    deployment: seen.deployment === null ? null : presentDeployment(seen.deployment),
  };
}

const setting = z.object({
  key: z.string().meta({ example: 'git_timeout' }),
  variable: z.string().nullable().meta({ description: 'Null if it can only stand in the file.', example: 'SKEP_GIT_TIMEOUT' }),
  source: z.enum(['environment', 'file', 'default']),
  value: z.string().nullable().meta({ description: 'For a person. Null if there is none, and always for a secret.' }),
  is_secret: z.boolean(),
  form: z.string().meta({ description: 'What it takes.' }),
}).meta({ id: 'Setting' });

const common = { ...noInput, method: 'get', tag: 'Overview', needsKey: true, failures: [] } as const;

export const overviewOperations = [
  operation({
    ...common,
    path: '/api/v1/overview',
    operationId: 'get_overview',
    summary: 'See the state of the deployment',
    description: 'What runs, rests and fails, and why; cheap enough to ask every few seconds. It wakes nothing.',
    success: { status: 200, description: 'The overview.', schema: overview },
    handle: async ({ skep, scope, http }) => {
      const isAll = scope === null;
      const [seen, { parts }] = await Promise.all([skep.overview(scope), http.readiness({ isDetailed: isAll })]);
      return presentOverview(seen, parts, isAll);
    },
  }),
  operation({
    ...common,
    adminOnly: true,
    path: '/api/v1/settings',
    operationId: 'list_settings',
    summary: 'See the settings of the server',
    description: "Needs an administrator's key. Of secrets it shows only whether they are set.",
    success: { status: 200, description: 'The settings.', schema: z.object({ items: z.array(setting) }).meta({ id: 'SettingList' }) },
    handle: ({ http }) => ({ items: (http.options.settings ?? []).map(({ isSecret, ...same }) => ({ ...same, is_secret: isSecret })) }),
  }),
];

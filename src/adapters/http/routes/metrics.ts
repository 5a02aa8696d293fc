import { z } from 'zod';
import { operation } from '../operation.ts';
import { readOverview } from './overview.ts';

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [value: number, labels?: Labels];

/** Returns a metric in Prometheus' text format; nothing if it has no values. A null is a value that is not known. */
function metric(type: 'gauge' | 'counter', name: string, help: string, samples: readonly (readonly [number | null, Labels?])[]): string {
  const known = samples.filter((sample): sample is Sample => sample[0] !== null);
  const lines = known.map(([value, labels = {}]) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`;
  });
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

/** Returns the count of each key, with the key as the label's value. */
function byWord(label: string, counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).map(([word, count]) => [count, { [label]: word }]);
}

/** Returns the overview of the whole deployment as metrics. All values are read for the request, so nothing is kept between two. */
function metricsOf({ sandboxes, conversations, starts, limits, parts, deployment }: Awaited<ReturnType<typeof readOverview>>): string {
  const { pools = [], disk = null, memory } = deployment ?? {};
  const { user, system } = process.cpuUsage();
  return [
    metric('gauge', 'skep_sandboxes', 'Sandboxes by status, without those in quarantine.', byWord('status', sandboxes.by_status)),
    metric('gauge', 'skep_sandboxes_in_quarantine', 'Sandboxes that the store does not know.', [[sandboxes.in_quarantine]]),
    metric('gauge', 'skep_conversations', 'Conversations by the step of their start.',
      byWord('start_status', conversations.by_start_status)),
    metric('gauge', 'skep_agents', 'Conversations with an agent, by what it does.',
      byWord('execution_status', conversations.by_execution_status)),
    metric('gauge', 'skep_sandbox_starts', 'Starts of the last hour on this server.',
      byWord('result', { succeeded: starts.succeeded, failed: starts.failed })),
    metric('gauge', 'skep_sandbox_start_seconds', 'Time until RUNNING, of the starts of the last hour.',
      [[seconds(starts.p50_ms), { quantile: '0.5' }], [seconds(starts.p95_ms), { quantile: '0.95' }]]),
    metric('gauge', 'skep_limit_used', 'Use of a limit. For a limit per owner: of the owner that is nearest to it.',
      limits.map(({ limit, used }) => [used, { limit }])),
    metric('gauge', 'skep_limit_max', 'The limit, if there is one.', limits.map(({ limit, max }) => [max, { limit }])),
    metric('gauge', 'skep_pool_sandboxes', 'Sandboxes in a pool.', pools.flatMap(({ sandbox_spec_id: spec, running, starting }) =>
      [[running, { spec, state: 'running' }], [starting, { spec, state: 'starting' }]] as const)),
    metric('counter', 'skep_pool_requests_total', 'Starts that found a sandbox in the pool (hit), or found it empty (miss).',
      pools.flatMap(({ sandbox_spec_id: spec, hits, misses }) =>
        [[hits, { spec, result: 'hit' }], [misses, { spec, result: 'miss' }]] as const)),
    metric('gauge', 'skep_part_up', '1 if the part answers.', parts.map(({ part, adapter, ok }) => [Number(ok), { part, adapter }])),
    metric('gauge', 'skep_disk_total_bytes', 'Size of the disk with the sandboxes.', [[disk?.total_bytes ?? null]]),
    metric('gauge', 'skep_disk_free_bytes', 'Free space of the disk with the sandboxes.', [[disk?.free_bytes ?? null]]),
    metric('gauge', 'skep_agent_output_bytes', 'Output of agents that is kept in memory.', [[memory?.agents_held_bytes ?? null]]),
    metric('gauge', 'process_resident_memory_bytes', 'Memory of the server process.', [[memory?.server_bytes ?? null]]),
    metric('counter', 'process_cpu_seconds_total', 'CPU time of the server process.', [[(user + system) / 1e6]]),
    metric('gauge', 'process_start_time_seconds', 'Start of the server process, since the epoch.', [[performance.timeOrigin / 1000]]),
  ].join('');
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}

export const metricsOperation = operation('get', '/metrics', {
  tag: 'Overview',
  adminOnly: true,
  operationId: 'get_metrics',
  summary: 'Get metrics for Prometheus',
  description: "Needs an administrator's key, for example as `Authorization: Bearer`. The values are those of the overview of all owners.",
  success: {
    status: 200, description: "Prometheus' text format.", schema: z.string(), media: 'text/plain; version=0.0.4; charset=utf-8',
  },
  failures: [],
  handle: async (context) => metricsOf(await readOverview(context)),
});

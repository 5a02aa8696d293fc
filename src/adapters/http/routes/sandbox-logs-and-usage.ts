import { z } from 'zod';
import { flag, timestamp, wholeNumber } from '../common-schemas.ts';
import { operation, StreamedBody } from '../operation.ts';
import { presenter } from '../presenter.ts';

const maxTailBytes = 1 << 20;

const logQuery = z.object({
  tail_bytes: wholeNumber(0, maxTailBytes).optional().describe('Only the last bytes, at most this many. Default: everything that is kept.'),
  follow: flag('Continue until the sandbox stops.'),
});

const logOperation = operation('get', '/api/v1/sandboxes/{id}/logs', {
  tag: 'Sandboxes',
  operationId: 'get_sandbox_logs',
  summary: 'Read the log of a sandbox',
  description:
    "The standard output and error of the sandbox's own command. Values of secrets are masked. The bytes need not be UTF-8. " +
    'Does not resume a paused sandbox. Empty if the runtime has no log of the sandbox.',
  query: logQuery,
  success: { status: 200, description: 'The log.', schema: z.string(), media: 'text/plain; charset=utf-8' },
  failures: ['sandbox_not_found', 'runtime_unavailable', 'runtime_timeout'],
  handle: async (context, { params, query: { tail_bytes: tailBytes, follow = false } }) => {
    const { skep, principal } = context;
    const ends = context.openStream();
    const request = { follow, ...(tailBytes !== undefined && { tailBytes }) };
    return new StreamedBody(await skep.sandboxes.logs(principal, params.id, request, ends), ends);
  },
});

const sandboxUsage = z
  .object({
    cpu_ms: z.int().nullable().describe('CPU time since its last start, in milliseconds.'),
    cpu_percent: z.number().nullable().describe('CPU use over about the last second. 100 is one full CPU.'),
    memory_bytes: z.int().nullable(),
    memory_limit_bytes: z.int().nullable().describe('Also null if there is no limit.'),
    disk_bytes: z.int().nullable().describe('The size of the files that it added or changed.'),
    pids: z.int().nullable().describe('How many processes and threads it has.'),
    at: timestamp,
  })
  .meta({ id: 'SandboxUsage' });

const usageOperation = operation('get', '/api/v1/sandboxes/{id}/usage', {
  tag: 'Sandboxes',
  operationId: 'get_sandbox_usage',
  summary: 'Get the resource usage of a sandbox',
  description: 'Can take seconds if it has many files. Values that are not known are null, and so are CPU and memory unless it runs.',
  success: { status: 200, description: 'CPU, memory and disk.', schema: sandboxUsage },
  failures: ['sandbox_not_found', 'runtime_unavailable', 'runtime_timeout'],
  handle: async ({ skep, principal }, { params }) =>
    presenter(sandboxUsage)({ ...(await skep.sandboxes.usage(principal, params.id)), at: skep.clock.now() }),
});

export const sandboxReportOperations = [logOperation, usageOperation];

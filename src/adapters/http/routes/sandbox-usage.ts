import { z } from 'zod';
import { idPath, timestamp } from '../common-schemas.ts';
import { operation } from '../operation.ts';
import { presenter } from '../presenter.ts';

const sandboxUsage = z
  .object({
    cpu_ms: z.int().nullable().meta({ description: 'CPU time since its last start, in milliseconds.' }),
    cpu_percent: z.number().nullable().meta({ description: 'CPU use over about the last second. 100 is one full CPU.' }),
    memory_bytes: z.int().nullable(),
    memory_limit_bytes: z.int().nullable().meta({ description: 'Also null if there is no limit.' }),
    disk_bytes: z.int().nullable().meta({ description: 'The size of the files that it added or changed.' }),
    pids: z.int().nullable().meta({ description: 'How many processes and threads it has.' }),
    at: timestamp,
  })
  .meta({ id: 'SandboxUsage' });

export const usageOperation = operation({
  tag: 'Sandboxes',
  method: 'get',
  path: '/api/v1/sandboxes/{id}/usage',
  operationId: 'get_sandbox_usage',
  summary: 'Get the resource usage of a sandbox',
  description: 'Can take seconds if it has many files. Values that are not known are null, and so are CPU and memory unless it runs.',
  params: idPath,
  success: { status: 200, description: 'CPU, memory and disk.', schema: sandboxUsage },
  failures: ['sandbox_not_found', 'runtime_unavailable', 'runtime_timeout'],
  handle: async ({ skep, scope }, { params }) =>
    presenter(sandboxUsage)({ ...(await skep.sandboxes.usage(scope, params.id)), at: skep.clock.now() }),
});

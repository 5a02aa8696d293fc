import { z } from 'zod';
import { timestamp } from '../common-schemas.ts';
import { operation } from '../operation.ts';
import { presenter } from '../presenter.ts';
import { sandboxPath } from './sandboxes.ts';

const sandboxUsage = z
  .object({
    cpu_ms: z.int().nullable().meta({ description: 'CPU time of its present run, in milliseconds.' }),
    cpu_percent: z.number().nullable().meta({ description: 'CPU time per time, over the last second or so: 100 is one CPU.' }),
    memory_bytes: z.int().nullable(),
    memory_limit_bytes: z.int().nullable().meta({ description: 'Null if there is no limit, too.' }),
    disk_bytes: z.int().nullable().meta({ description: 'Files that it added or changed.' }),
    pids: z.int().nullable().meta({ description: 'How many processes and threads it has.' }),
    at: timestamp,
  })
  .meta({ id: 'SandboxUsage' });

export const usageOperation = operation({
  tag: 'Sandboxes',
  method: 'get',
  path: '/api/v1/sandboxes/{id}/usage',
  operationId: 'get_sandbox_usage',
  summary: 'What a sandbox takes',
  description: 'May take seconds if it has many files. What is not known, or not taken since it does not run, is null.',
  params: sandboxPath,
  success: { status: 200, description: 'CPU, memory and disk.', schema: sandboxUsage },
  failures: ['sandbox_not_found', 'runtime_unavailable', 'runtime_timeout'],
  handle: async ({ skep, scope }, { params }) =>
    presenter(sandboxUsage)({ ...(await skep.sandboxes.usage(scope, params.id)), at: skep.clock.now() }),
});

import { z } from 'zod';

export const health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });

const partReadiness = z
  .object({
    part: z.string().meta({ example: 'store' }),
    adapter: z.string().meta({ example: 'sqlite' }),
    ok: z.boolean(),
    detail: z.string(),
  })
  .meta({ id: 'PartReadiness' });

export const readinessReport = z
  .object({ status: z.enum(['ready', 'not_ready']), parts: z.array(partReadiness) })
  .meta({ id: 'Readiness', description: 'Whether each part of the deployment answers.' });

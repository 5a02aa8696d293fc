import { z } from 'zod';
import type { PartCheck, Skep } from '../../../application/skep.ts';
import { apiReferencePage } from '../api-reference.ts';
import { retryAfterHeader } from '../common-schemas.ts';
import { serversOf } from '../openapi.ts';
import { noInput, operation } from '../operation.ts';

const health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });

const partReadiness = z
  .object({
    part: z.string().meta({ example: 'store' }),
    adapter: z.string().meta({ example: 'sqlite' }),
    ok: z.boolean(),
    detail: z.string(),
  })
  .meta({ id: 'PartReadiness' });

const readinessReport = z
  .object({ status: z.enum(['ready', 'not_ready']), parts: z.array(partReadiness) })
  .meta({ id: 'Readiness', description: 'Whether each part of the deployment answers.' });

export type ReadinessReport = z.output<typeof readinessReport>;

const keepMs = 1000;

/**
 * Returns what reports whether the parts answer, for anyone who asks, since no key is needed. So a report is used again for a while,
 * however many ask. It does not say why: the detail, which may name places of the host, goes to the log.
 */
export function readinessReporter(skep: Skep): () => Promise<ReadinessReport> {
  const broken = new Set<string>();
  let report: Promise<ReadinessReport> | null = null;
  let keptUntil = 0;
  const check = async (): Promise<ReadinessReport> => {
    const parts = await skep.check();
    for (const part of parts) logChange(skep.logger, broken, part);
    return {
      status: parts.every(({ ok }) => ok) ? 'ready' : 'not_ready',
      parts: parts.map(({ part, adapter, ok }) => ({ part, adapter, ok, detail: ok ? 'answers' : 'does not answer; the log says why' })),
    };
  };
  return () => {
    if (report === null || skep.clock.now() >= keptUntil) {
      keptUntil = Infinity;
      report = check().finally(() => (keptUntil = skep.clock.now() + keepMs));
    }
    return report;
  };
}

function logChange(logger: Skep['logger'], broken: Set<string>, { part, adapter, ok, detail }: PartCheck): void {
  const name = `${part}/${adapter}`;
  if (!ok && !broken.has(name)) logger.warn({ part, adapter, detail }, 'a part does not answer');
  if (ok && broken.has(name)) logger.info({ part, adapter, detail }, 'a part answers again');
  if (ok) broken.delete(name);
  else broken.add(name);
}

const open = { ...noInput, method: 'get', tag: 'Service', needsKey: false, failures: [] } as const;

export const serviceOperations = [
  operation({
    ...open,
    path: '/health',
    operationId: 'health',
    summary: 'Check that the server listens',
    success: { status: 200, description: 'It listens.', schema: health },
    handle: () => ({ value: { status: 'ok' as const } }),
  }),
  operation({
    ...open,
    path: '/ready',
    operationId: 'ready',
    summary: 'Check that every part answers',
    success: { status: 200, description: 'Every part answers.', schema: readinessReport },
    otherwise: { status: 503, description: 'A part does not answer.', schema: readinessReport, headers: retryAfterHeader },
    handle: async ({ http }) => {
      const value = await http.readiness();
      return value.status === 'ready' ? { value } : { value, status: 503, headers: { 'Retry-After': '1' } };
    },
  }),
  operation({
    ...open,
    path: '/openapi.json',
    operationId: 'openapi',
    summary: 'Get this description',
    success: { status: 200, description: 'An OpenAPI 3.1 document.', schema: z.looseObject({ openapi: z.string() }) },
    handle: ({ http, mount }) => ({ value: { ...http.openApi(), servers: serversOf(http.settings.publicUrl, mount) } }),
  }),
  operation({
    ...open,
    path: '/docs',
    operationId: 'docs',
    summary: 'Read this description',
    success: { status: 200, description: 'A page for people.', schema: z.string(), media: 'text/html; charset=utf-8' },
    handle: ({ http }) => {
      const { html, headers } = apiReferencePage(http.settings.product);
      return { value: html, headers };
    },
  }),
];

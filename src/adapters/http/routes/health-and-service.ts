import { z } from 'zod';
import type { Component, Skep } from '../../../application/skep.ts';
import { waitAtMost } from '../../../application/timers.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { keyAccesses } from '../../../domain/principal.ts';
import { apiReferenceHeaders, apiReferencePage } from '../api-reference.ts';
import { retryAfterHeader } from '../common-schemas.ts';
import { serversOf } from '../openapi.ts';
import { operation } from '../operation.ts';
import { presenter } from '../presenter.ts';

const health = z.object({ status: z.literal('ok') }).meta({ id: 'Health' });

export const partReadiness = z
  .object({
    part: z.string().meta({ example: 'store' }),
    adapter: z.string().meta({ example: 'sqlite' }),
    ok: z.boolean(),
    detail: z.string(),
  })
  .meta({ id: 'PartReadiness' });

const readinessReport = z
  .object({
    status: z
      .enum(['ready', 'degraded', 'not_ready'])
      .describe('`degraded`: the server works, but a part other than the store does not answer.'),
    parts: z.array(partReadiness),
  })
  .meta({ id: 'Readiness', description: 'Whether the server can handle requests, and whether each part of the deployment answers.' });

export type ReadinessReport = z.output<typeof readinessReport>;
export type ReadinessReporter = ReturnType<typeof readinessReporter>;

/** How long the answer of the store, and of each other part, is reused for all callers. Other parts can be on other hosts. */
const storeKeptMs = 1000;
const othersKeptMs = 10_000;

/** The store, and each other part, is reported as not answering if it takes longer. Other parts can need several slow requests. */
const storeWithinMs = 500;
const othersWithinMs = 5000;
/** How long a report waits for a part that has answered before. Then it shows the earlier answer. */
const waitMs = 500;

/**
 * Returns a function that reports whether the server is ready. Anyone can call it without a key. The server is ready if its store works;
 * problems of a git host or an engine are only shown. Only a detailed report says why a part does not answer, because the reason may name
 * paths of the host.
 */
export function readinessReporter(skep: Skep): (options?: { readonly isDetailed?: boolean }) => Promise<ReadinessReport> {
  const watches = skep.parts.map((part) => ({ ...part, readResult: monitor(part, skep) }));
  return async ({ isDetailed = false } = {}) => {
    const parts = await Promise.all(watches.map(async ({ part, adapter, readResult }) => {
      const { ok, detail, refusal } = await readResult();
      return { part, adapter, ok, detail: isDetailed ? detail : ok ? 'answers' : `${problemText(refusal)}; the log says why` };
    }));
    const broken = parts.filter(({ ok }) => !ok);
    const trouble = broken.some(({ part }) => part === 'store') ? 'not_ready' : 'degraded';
    return { status: broken.length === 0 ? 'ready' : trouble, parts };
  };
}

function problemText(refusal: CheckResult['refusal']): string {
  if (refusal === undefined) return 'does not answer';
  return refusal === 'credential' ? 'refuses the credential' : 'limits the rate of requests';
}

/** After this time, an unfinished check is abandoned and a new one starts. */
const abandonAfterMs = 10_000;

/** Runs one check of the part at a time and reuses the result for a while. Logs when the part stops or starts to answer. */
function monitor({ part, adapter, check }: Component, { clock, logger }: Skep): () => Promise<CheckResult> {
  const [keptMs, withinMs] = part === 'store' ? [storeKeptMs, storeWithinMs] : [othersKeptMs, othersWithinMs];
  const late = { ok: false, detail: `no answer within ${withinMs} ms` };
  let last: CheckResult | null = null;
  /** Resolves when `last` is the result of the check, or says that it is late. Null if the next caller starts a check. */
  let current: Promise<unknown> | null = null;
  const note = (result: CheckResult & { readonly error?: unknown }): void => {
    const { ok, refusal, ...details } = result;
    const lastOk = last?.ok ?? true;
    if (lastOk && !ok) logger.warn({ part, adapter, ...details }, `a part ${problemText(refusal)}`);
    if (!lastOk && ok) logger.info({ part, adapter, ...details }, 'a part answers again');
    last = result;
  };
  const start = (): Promise<unknown> => {
    const drop = (): void => {
      if (current === noted) current = null;
    };
    const cancel = clock.after(abandonAfterMs, drop);
    const checked = check().catch((error: unknown) => ({ ok: false, detail: 'the check failed', error })).then((result) => {
      cancel();
      // The result of an abandoned check is ignored.
      if (current === noted) note(result);
      clock.after(keptMs, drop);
      return 'checked';
    });
    const noted = waitAtMost(clock, withinMs, checked).then((inTime) => inTime ?? note(late));
    return noted;
  };
  return async () => {
    current ??= start();
    await (last === null ? current : waitAtMost(clock, waitMs, current));
    return last ?? late;
  };
}

const caller = z
  .object({
    user_id: z.string().describe('The owner of everything that the key creates.'),
    key_name: z.string(),
    access: z.enum(keyAccesses),
    repositories: z
      .array(z.string())
      .nullable()
      .describe('The repositories that the key can list, clone and publish to, as patterns (`acme/*`). Null: all.'),
    has_keys: z.boolean().describe('Whether keys can be listed, made and revoked over HTTP.'),
  })
  .meta({ id: 'Caller', description: 'Who makes the request.' });

const common = { tag: 'Service', failures: [] } as const;
const open = { ...common, isPublic: true } as const;

export const serviceOperations = [
  operation('get', '/health', {
    ...open,
    operationId: 'health',
    summary: 'Check that the server listens',
    success: { status: 200, description: 'It listens.', schema: health },
    handle: () => ({ status: 'ok' as const }),
  }),
  operation('get', '/ready', {
    ...open,
    operationId: 'ready',
    summary: 'Check whether requests can be served',
    description:
      'The server is ready if its store can be read and written. If a git host or the engine does not answer, the status is `degraded`.',
    success: { status: 200, description: 'The server can handle requests.', schema: readinessReport },
    otherwise: [{ status: 503, description: "The store can't be read or written.", schema: readinessReport, headers: retryAfterHeader }],
    handle: async ({ http, response }) => {
      const report = await http.readiness();
      if (report.status === 'not_ready') response.status(503).set('Retry-After', '1');
      return report;
    },
  }),
  operation('get', '/api/v1/me', {
    ...common,
    operationId: 'get_caller',
    summary: 'Get the user and the access of the key',
    success: { status: 200, description: 'The user and the access of the key.', schema: caller },
    handle: ({ skep, principal }) =>
      presenter(caller)({ ...principal, repositories: principal.repositories ?? null, hasKeys: skep.auth.keys !== undefined }),
  }),
  operation('get', '/openapi.json', {
    ...open,
    operationId: 'openapi',
    summary: 'Get the OpenAPI document',
    success: { status: 200, description: 'An OpenAPI 3.1 document.', schema: z.looseObject({ openapi: z.string() }) },
    handle: ({ http, mount }) => ({ ...http.openApi(), servers: serversOf(http.options.publicUrl, mount, http.localUrl) }),
  }),
  operation('get', '/docs', {
    ...open,
    operationId: 'docs',
    summary: 'Read the API reference',
    success: { status: 200, description: 'An HTML page.', schema: z.string(), media: 'text/html; charset=utf-8' },
    handle: ({ response }) => {
      response.set(apiReferenceHeaders);
      return apiReferencePage;
    },
  }),
];

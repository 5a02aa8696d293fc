import { z } from 'zod';
import type { Component, Skep } from '../../../application/skep.ts';
import { waitAtMost } from '../../../application/timers.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { duration } from '../../shared/message-formatting.ts';
import { apiReferenceHeaders, apiReferencePage } from '../api-reference.ts';
import { keyAccess, retryAfterHeader } from '../common-schemas.ts';
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
/** How long a report waits for a check if there is an earlier result. Then it shows the earlier one, unless that is too old. */
const waitMs = 500;
const maxAgeMs = 30_000;

/**
 * Returns a function that reports whether the server is ready. Anyone can call it without a key. The server is ready if its store works;
 * problems of a git host or an engine are only shown. Only a detailed report says why a part does not answer, because the reason may name
 * paths of the host.
 */
export function readinessReporter(skep: Skep): (options?: { readonly isDetailed?: boolean }) => Promise<ReadinessReport> {
  const watches = skep.parts.map((part) => ({ ...part, monitor: new PartMonitor(part, skep) }));
  return async ({ isDetailed = false } = {}) => {
    const parts = await Promise.all(watches.map(async ({ part, adapter, monitor }) => {
      const { ok, detail, refusal } = await monitor.read();
      return { part, adapter, ok, detail: isDetailed ? detail : ok ? 'answers' : `${problemText(refusal)}; the log says why` };
    }));
    const broken = parts.filter(({ ok }) => !ok);
    const worstStatus = broken.some(({ part }) => part === 'store') ? 'not_ready' : 'degraded';
    return { status: broken.length === 0 ? 'ready' : worstStatus, parts };
  };
}

function problemText(refusal: CheckResult['refusal']): string {
  if (refusal === undefined) return 'does not answer';
  return refusal === 'credential' ? 'refuses the credential' : 'limits the rate of requests';
}

/** After this time, an unfinished check is abandoned and a new one starts. */
const abandonAfterMs = 10_000;

/** A check of a part. It is over when its result is not reused any more; then the next report starts another one. */
interface PartCheck {
  isOver: boolean;
}

/** Runs one check of the part at a time and reuses the result for a while. Logs when the part stops or starts to answer. */
class PartMonitor {
  readonly #component: Component;
  readonly #deps: Pick<Skep, 'clock' | 'logger'>;
  readonly #keptMs: number;
  readonly #withinMs: number;
  #check: PartCheck = { isOver: true };
  /** Resolves when the check has a result, or is late. */
  #reported: Promise<void> = Promise.resolve();
  /** Null if there is none yet, or it is too old to be shown. */
  #newest: CheckResult | null = null;
  #cancelExpiry: () => void = () => {};
  #wasOk = true;

  constructor(component: Component, deps: Pick<Skep, 'clock' | 'logger'>) {
    this.#component = component;
    this.#deps = deps;
    [this.#keptMs, this.#withinMs] = component.part === 'store' ? [storeKeptMs, storeWithinMs] : [othersKeptMs, othersWithinMs];
  }

  async read(): Promise<CheckResult> {
    if (this.#check.isOver) {
      this.#check = { isOver: false };
      this.#reported = this.#run(this.#check);
    }
    await (this.#newest === null ? this.#reported : waitAtMost(this.#deps.clock, waitMs, this.#reported));
    return this.#newest ?? this.#late;
  }

  get #late(): CheckResult {
    return { ok: false, detail: `no answer within ${duration(this.#withinMs)}` };
  }

  async #run(check: PartCheck): Promise<void> {
    const { clock } = this.#deps;
    const inTime = await waitAtMost(clock, this.#withinMs, this.#finish(check));
    if (inTime === null) this.#note(this.#late);
  }

  /** Notes the result of the check, also if it is late. */
  async #finish(check: PartCheck): Promise<CheckResult> {
    const { clock } = this.#deps;
    const end = (): void => void (check.isOver = true);
    const cancelAbandonment = clock.after(abandonAfterMs, end);
    const result = await this.#component.check().catch((error: unknown) => ({ ok: false, detail: 'the check failed', error }));
    cancelAbandonment();
    // The result of an abandoned check is ignored.
    if (!check.isOver) this.#note(result);
    clock.after(this.#keptMs, end);
    return result;
  }

  #note(result: CheckResult & { readonly error?: unknown }): void {
    const { clock, logger } = this.#deps;
    const { part, adapter } = this.#component;
    const { ok, refusal, ...details } = result;
    if (this.#wasOk && !ok) logger.warn({ part, adapter, ...details }, `a part ${problemText(refusal)}`);
    if (!this.#wasOk && ok) logger.info({ part, adapter, ...details }, 'a part answers again');
    this.#wasOk = ok;
    this.#newest = result;
    this.#cancelExpiry();
    this.#cancelExpiry = clock.after(maxAgeMs, () => (this.#newest = null));
  }
}

const caller = z
  .object({
    user_id: z.string().describe('The owner of everything that the key creates.'),
    key_name: z.string(),
    access: keyAccess,
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

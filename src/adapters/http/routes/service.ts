import { z } from 'zod';
import type { PartCheck, Skep } from '../../../application/skep.ts';
import { apiReferencePage } from '../api-reference.ts';
import { retryAfterHeader } from '../common-schemas.ts';
import { noInput, operation } from '../operation.ts';

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

type Report = z.output<typeof readinessReport>;

const keepMs = 1000;

/**
 * Whether the parts answer, for anyone who asks: no key is needed. So an answer is used again for a while, however many
 * ask, and tells no more than whether: the detail, which may name places of the host, goes to the log.
 */
export class Readiness {
  readonly #skep: Skep;
  readonly #broken = new Set<string>();
  #report: Promise<Report> | null = null;
  #pending = false;
  #keptUntil = 0;

  constructor(skep: Skep) {
    this.#skep = skep;
  }

  report(): Promise<Report> {
    if (this.#report === null || (!this.#pending && this.#skep.clock.now() >= this.#keptUntil)) {
      this.#report = this.#look();
    }
    return this.#report;
  }

  async #look(): Promise<Report> {
    this.#pending = true;
    try {
      const parts = await this.#skep.check();
      for (const part of parts) this.#note(part);
      return {
        status: parts.every(({ ok }) => ok) ? 'ready' : 'not_ready',
        parts: parts.map(({ part, adapter, ok }) => ({ part, adapter, ok, detail: ok ? 'answers' : 'does not answer; the log says why' })),
      };
    } finally {
      this.#pending = false;
      this.#keptUntil = this.#skep.clock.now() + keepMs;
    }
  }

  #note({ part, adapter, ok, detail }: PartCheck): void {
    const name = `${part}/${adapter}`;
    if (!ok && !this.#broken.has(name)) this.#skep.logger.warn({ part, adapter, detail }, 'a part does not answer');
    if (ok && this.#broken.has(name)) this.#skep.logger.info({ part, adapter, detail }, 'a part answers again');
    if (ok) this.#broken.delete(name);
    else this.#broken.add(name);
  }
}

const open = { ...noInput, method: 'get', tag: 'Service', needsKey: false, failures: [] } as const;

export const serviceOperations = [
  operation({
    ...open,
    path: '/health',
    operationId: 'health',
    summary: 'Tell that the server listens',
    success: { status: 200, description: 'It listens.', schema: health },
    handle: () => ({ value: { status: 'ok' as const } }),
  }),
  operation({
    ...open,
    path: '/ready',
    operationId: 'ready',
    summary: 'Tell whether every part answers',
    success: { status: 200, description: 'Every part answers.', schema: readinessReport },
    otherwise: { status: 503, description: 'A part does not answer.', schema: readinessReport, headers: retryAfterHeader },
    handle: async ({ http }) => {
      const value = await http.readiness.report();
      return value.status === 'ready' ? { value } : { value, status: 503, headers: { 'Retry-After': '1' } };
    },
  }),
  operation({
    ...open,
    path: '/openapi.json',
    operationId: 'openapi',
    summary: 'Get this description',
    success: { status: 200, description: 'An OpenAPI 3.1 document.', schema: z.looseObject({ openapi: z.string() }) },
    handle: ({ http, mount }) => ({ value: http.openApi(mount) }),
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

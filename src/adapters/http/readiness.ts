import type { z } from 'zod';
import type { PartCheck, Skep } from '../../application/skep.ts';
import type { readinessReport } from './schema/service.ts';

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

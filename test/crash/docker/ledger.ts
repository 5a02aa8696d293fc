import type { Json } from '../../support/client.ts';

/** What an answer said that a sandbox is, and that nobody asked to change since. */
export interface Held {
  readonly status: 'RUNNING' | 'PAUSED';
  readonly pauseKind: unknown;
}

/** What the callers know of one sandbox. */
export class Known {
  readonly owner: string;
  deletion: 'none' | 'asked' | 'acknowledged' = 'none';
  /** Null where it is not known. */
  held: Held | null = null;
  /** As it was told last; it may have changed since. */
  status = 'STARTING';
  #asked = 0;
  #open = 0;

  constructor(owner: string) {
    this.owner = owner;
  }

  /** Somebody asks to change it. Answers with what to call with the answer, which tells nothing where another asked meanwhile. */
  ask(): (answer: Json | null) => void {
    const alone = this.#open === 0;
    this.#asked += 1;
    this.#open += 1;
    this.held = null;
    const asked = this.#asked;
    return (answer) => {
      this.#open -= 1;
      const status = answer?.['status'];
      if (!alone || asked !== this.#asked || (status !== 'RUNNING' && status !== 'PAUSED')) return;
      this.held = { status, pauseKind: answer?.['pause_kind'] ?? null };
    };
  }

  /** Those who wait for an answer get none; what they asked for is in the store, or is not. */
  serverDied(): void {
    this.#open = 0;
  }
}

/** What was acknowledged, and what was found wrong. */
export interface Ledger {
  readonly sandboxes: Map<string, Known>;
  readonly wrong: string[];
  engineDeaths: number;
  /** How many answers there were of each kind. */
  readonly told: Map<string, number>;
}

export function newLedger(): Ledger {
  return { sandboxes: new Map(), wrong: [], engineDeaths: 0, told: new Map() };
}

export function tell(ledger: Ledger, what: string): void {
  ledger.told.set(what, (ledger.told.get(what) ?? 0) + 1);
}

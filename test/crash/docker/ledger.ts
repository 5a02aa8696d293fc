import type { Json } from '../../support/client.ts';

/** The state of a sandbox in a response, if nobody has requested a change since. */
export interface Held {
  readonly status: 'RUNNING' | 'PAUSED';
  readonly pauseKind: unknown;
}

/** What the callers know about one sandbox. */
export class Known {
  readonly owner: string;
  deletion: 'none' | 'asked' | 'acknowledged' = 'none';
  /** Null if the state is not known. */
  held: Held | null = null;
  /** The last reported status. It may have changed since. */
  status = 'STARTING';
  #asked = 0;
  #open = 0;

  constructor(owner: string) {
    this.owner = owner;
  }

  /** Call this before a change. Returns a function for the response, which is ignored if another change overlaps. */
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

  /** Open requests get no response. Their changes may or may not be stored. */
  serverDied(): void {
    this.#open = 0;
  }
}

/** The acknowledged states, and the mistakes. */
export interface Ledger {
  readonly sandboxes: Map<string, Known>;
  readonly wrong: string[];
  engineDeaths: number;
  /** The number of responses of each kind. */
  readonly told: Map<string, number>;
}

export function newLedger(): Ledger {
  return { sandboxes: new Map(), wrong: [], engineDeaths: 0, told: new Map() };
}

export function tell(ledger: Ledger, what: string): void {
  ledger.told.set(what, (ledger.told.get(what) ?? 0) + 1);
}

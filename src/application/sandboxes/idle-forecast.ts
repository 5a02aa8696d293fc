import { type IdleAction, nextIdleAction } from '../../domain/idle-policy.ts';
import { isInScope, type OwnerScope } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';

interface IdleForecastDeps {
  readonly store: { readonly sandboxes: Pick<SandboxStore, 'findMany'> };
  readonly runtime: Pick<SandboxRuntime, 'capabilities'>;
}

export interface ForecastAction {
  readonly sandbox: Sandbox;
  readonly action: IdleAction & { readonly at: number };
}

/** Forecasts which sandboxes the idle policy pauses and deletes next. Each sweep reads all records and notes here when each is due. */
export class IdleForecast {
  readonly #deps: IdleForecastDeps;
  #due: readonly (Pick<Sandbox, 'id' | 'ownerId'> & { readonly at: number })[] = [];

  constructor(deps: IdleForecastDeps) {
    this.#deps = deps;
  }

  /** Takes all records of a sweep. */
  note(sandboxes: readonly Sandbox[]): void {
    const due = sandboxes.flatMap((sandbox) => {
      const action = this.#actionOf(sandbox);
      return action === null ? [] : [{ id: sandbox.id, ownerId: sandbox.ownerId, at: action.at }];
    });
    this.#due = due.toSorted((a, b) => a.at - b.at);
  }

  /** Returns the next actions, soonest first, from the present records. Sandboxes newer than the last sweep are missing. */
  async next(scope: OwnerScope, limit: number): Promise<readonly ForecastAction[]> {
    // Some sandboxes were active since the sweep, so more are read than returned.
    const soonest = this.#due.filter(({ ownerId }) => isInScope(ownerId, scope)).slice(0, 2 * limit);
    const records = await this.#deps.store.sandboxes.findMany(soonest.map(({ id }) => id));
    const actions = records.flatMap((sandbox): ForecastAction[] => {
      const action = isInScope(sandbox.ownerId, scope) ? this.#actionOf(sandbox) : null;
      return action === null ? [] : [{ sandbox, action }];
    });
    return actions.toSorted((a, b) => a.action.at - b.action.at).slice(0, limit);
  }

  #actionOf(sandbox: Sandbox): ForecastAction['action'] | null {
    return nextIdleAction(sandbox, this.#deps.runtime.capabilities.freeze);
  }
}

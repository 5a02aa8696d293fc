import { Failure, isFailureOf } from '../../domain/failure.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import { markDeleted, move } from '../../domain/sandbox-lifecycle.ts';
import type { SandboxLimits } from '../../domain/sandbox-limits.ts';
import type { PauseKind, Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { SandboxFilter, SandboxStore } from '../../ports/sandbox-store.ts';
import { waitAtMost } from '../timers.ts';
import { limitFailure, resumeOnce, Room, startOnce, unknownSpec, type WhenFull } from './sandbox-admission.ts';
import type { SandboxPool } from './sandbox-pool.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';
import type { SandboxSpecs } from './sandbox-specs.ts';
import { writeMove } from './sandbox-writes.ts';

/** How long a pause, a resumption or a deletion is waited for, if nothing else is configured. */
export const defaultAnswerWithinMs = 20_000;

export interface SandboxesDeps {
  readonly store: SandboxStore;
  readonly specs: SandboxSpecs;
  readonly driver: SandboxReconciler;
  readonly pool: SandboxPool;
  readonly limits: SandboxLimits;
  /** Default: `refuse`. */
  readonly whenFull?: WhenFull;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** How long a pause, a resumption or a deletion is waited for before the status on the way is the answer. */
  readonly answerWithinMs: number;
}

export interface StartSandboxRequest {
  /** Null is the deployment's default. */
  readonly specId: string | null;
  readonly claim?: IdempotencyClaim;
}

/** The use cases of sandboxes. Every one takes the owner; another owner's sandbox does not exist for it. */
export class Sandboxes {
  readonly #deps: SandboxesDeps;
  readonly #room: Room;

  constructor(deps: SandboxesDeps) {
    this.#deps = deps;
    this.#room = new Room({ ...deps, whenFull: deps.whenFull ?? 'refuse' });
  }

  /**
   * Starts a sandbox and answers while it is STARTING, or with one from the pool of its spec, RUNNING. Failures: `invalid_request` (unknown spec),
   * `sandbox_limit_reached`, `idempotency_conflict`, `store_unavailable`.
   */
  async start(ownerId: string, { specId, claim }: StartSandboxRequest): Promise<Sandbox> {
    return await this.#start(this.newId(), ownerId, specId, claim);
  }

  /** An id for a sandbox that is started later. */
  newId(): string {
    return this.#deps.random.id('sb');
  }

  /**
   * Starts a sandbox under an id that was chosen before. Idempotent by id. Failures besides those of `start`:
   * `sandbox_not_found` (it was started before, and deleted since).
   */
  async startAs(id: string, ownerId: string, specId: string | null, claim?: IdempotencyClaim): Promise<Sandbox> {
    if ((await this.#deps.store.find(id)) === null) await this.#start(id, ownerId, specId, claim);
    return await this.get(ownerId, id);
  }

  async #start(id: string, ownerId: string, specId: string | null, claim?: IdempotencyClaim): Promise<Sandbox> {
    const { specs, clock } = this.#deps;
    const spec = specs.find(specId);
    if (spec === undefined) throw unknownSpec(specId);
    const started = await this.#room.admit({ id, ownerId }, () => startOnce(this.#deps, { id, ownerId, spec, now: clock.now() }, claim));
    switch (started.kind) {
      case 'started':
        return started.sandbox;
      case 'limit':
        throw limitFailure(started.reached);
      case 'repeated':
        return await this.get(ownerId, started.id);
      case 'conflict':
        throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
    }
  }

  /** Failures: `sandbox_not_found`, `store_unavailable`. */
  async get(ownerId: string, id: string): Promise<Sandbox> {
    const sandbox = await this.#deps.store.find(id);
    if (sandbox === null || sandbox.ownerId !== ownerId || sandbox.deletedAt !== null) {
      throw new Failure('sandbox_not_found', { id });
    }
    return sandbox;
  }

  /** The owner's sandboxes, newest first. Reads the store only. */
  async search(ownerId: string, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>> {
    return await this.#deps.store.search(ownerId, filter, page);
  }

  /**
   * Pauses a running sandbox and answers when it rests; a paused one is answered as it is. Failures:
   * `sandbox_not_found`, `sandbox_not_running`, `sandbox_busy`, `runtime_unavailable`, `runtime_timeout`.
   */
  async pause(ownerId: string, id: string, pauseKind: PauseKind): Promise<Sandbox> {
    for (;;) {
      const sandbox = await this.get(ownerId, id);
      const { status } = sandbox;
      if (status === 'PAUSED') return sandbox;
      if (status === 'PAUSING') return await this.#settled(ownerId, id, 'PAUSED');
      if (status === 'STARTING' || status === 'RESUMING') throw new Failure('sandbox_busy', { id, status });
      const next = move(sandbox, 'pause', { now: this.#deps.clock.now(), detail: 'paused by its owner', pauseKind });
      if (next === null) throw new Failure('sandbox_not_running', { id, status });
      if (await writeMove(this.#deps, sandbox, next, 'user')) return await this.#settled(ownerId, id, 'PAUSED');
    }
  }

  /**
   * Resumes a paused sandbox and answers when it is ready; for a running one it only notes the activity. Failures:
   * `sandbox_not_found`, `sandbox_not_paused`, `sandbox_busy`, `sandbox_limit_reached`, `runtime_unavailable`,
   * `runtime_timeout`.
   */
  async resume(ownerId: string, id: string): Promise<Sandbox> {
    const { store, clock } = this.#deps;
    for (;;) {
      const sandbox = await this.get(ownerId, id);
      const { status } = sandbox;
      if (status === 'RUNNING') {
        await store.touch(id, clock.now());
        return await this.get(ownerId, id);
      }
      if (status === 'RESUMING') return await this.#settled(ownerId, id, 'RUNNING');
      if (status === 'STARTING' || status === 'PAUSING') throw new Failure('sandbox_busy', { id, status });
      if (status !== 'PAUSED') throw new Failure('sandbox_not_paused', { id, status });
      const outcome = await this.#room.admit(sandbox, () => resumeOnce(this.#deps, sandbox));
      if (outcome.kind === 'limit') throw limitFailure(outcome.reached);
      if (outcome.kind === 'stale') continue;
      return await this.#settled(ownerId, id, 'RUNNING');
    }
  }

  /**
   * Deletes the sandbox. It is gone for every caller when this answers; where the runtime does not answer, the removal
   * is made up for later. Idempotent. Failure: `sandbox_not_found` (there never was one, or it is another owner's).
   */
  async delete(ownerId: string, id: string): Promise<void> {
    const { store, clock, driver, answerWithinMs } = this.#deps;
    for (;;) {
      const sandbox = await store.find(id);
      if (sandbox === null || sandbox.ownerId !== ownerId) throw new Failure('sandbox_not_found', { id });
      if (sandbox.deletedAt !== null) break;
      if (await writeMove(this.#deps, sandbox, markDeleted(sandbox, 'deleted by its owner', clock.now()), 'user')) break;
    }
    await waitAtMost(clock, answerWithinMs, driver.interrupt(id));
  }

  /** Drives the sandbox to rest and answers with what became of it; with the failure where it did not get there. */
  async #settled(ownerId: string, id: string, wanted: 'PAUSED' | 'RUNNING'): Promise<Sandbox> {
    const { clock, answerWithinMs, driver } = this.#deps;
    const settled = await waitAtMost(clock, answerWithinMs, driver.reconcile(id));
    const sandbox = await this.get(ownerId, id);
    const { status } = sandbox;
    if (status === wanted) return sandbox;
    if (settled?.failure != null) throw settled.failure;
    // Otherwise it is on the way still, or got there and was moved on by somebody else.
    if (status !== 'ERROR' && status !== 'MISSING') return sandbox;
    throw new Failure(wanted === 'PAUSED' ? 'sandbox_not_running' : 'sandbox_not_paused', { id, status });
  }
}

/** Is there a sandbox of this owner, not deleted? */
export async function ownedOrNull(sandboxes: Sandboxes, ownerId: string, id: string): Promise<Sandbox | null> {
  try {
    return await sandboxes.get(ownerId, id);
  } catch (error) {
    if (isFailureOf(error, 'sandbox_not_found')) return null;
    throw error;
  }
}

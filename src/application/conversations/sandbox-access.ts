import type { Conversation } from '../../domain/conversation.ts';
import { isFailureOf } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { interval } from '../timers.ts';
import type { SandboxReconciler } from '../sandboxes/sandbox-reconciler.ts';
import { findSandbox } from '../sandboxes/find-sandbox.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';

export interface SandboxAccessDeps {
  readonly sandboxes: Sandboxes;
  readonly sandboxStore: SandboxStore;
  readonly sandboxReconciler: SandboxReconciler;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A sandbox in use is noted as active at least so often, and twice as often as its rest rule looks for. */
const touchEveryMs = 30_000;

/** A conversation's hand on its sandbox. */
export class SandboxAccess {
  readonly #deps: SandboxAccessDeps;
  /** Conversations that wait for their sandbox to be moved, by its id. */
  readonly #waiting = new Map<string, Set<string>>();

  constructor(deps: SandboxAccessDeps) {
    this.#deps = deps;
  }

  /** The conversation's sandbox; null where there is none (any more). */
  find({ ownerId, sandboxId }: Conversation): Promise<Sandbox | null> {
    return findSandbox(this.#deps.sandboxStore, ownerId, sandboxId);
  }

  /** Starts the sandbox under the id that was chosen with the conversation. Idempotent. */
  async start({ ownerId, sandboxId, sandboxSpecId }: Conversation): Promise<void> {
    await this.#deps.sandboxes.startAs(sandboxId, ownerId, sandboxSpecId);
  }

  /** Failures: those of `Sandboxes.resume`, but for one that somebody moves at the same time: it is looked at again. */
  async resume({ ownerId, sandboxId }: Conversation): Promise<void> {
    try {
      await this.#deps.sandboxes.resume(ownerId, sandboxId);
    } catch (error) {
      if (!isFailureOf(error, 'sandbox_busy')) throw error;
    }
  }

  /** Waits until the sandbox rests. Answers with whether it has moved; where it has not, the conversation is told when it does. */
  async moved(conversation: Conversation, from: Sandbox | null, signal: AbortSignal): Promise<boolean> {
    this.await(conversation);
    const { promise: aborted, resolve } = Promise.withResolvers<null>();
    const abort = (): void => resolve(null);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      const settled = await Promise.race([this.#deps.sandboxReconciler.reconcile(conversation.sandboxId), aborted]);
      return settled === null || settled.sandbox?.status !== from?.status || settled.sandbox?.deletedAt !== null;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Notes that the conversation is to go on when its sandbox is moved. */
  await({ id, sandboxId }: Conversation): void {
    const waiting = this.#waiting.get(sandboxId) ?? new Set();
    this.#waiting.set(sandboxId, waiting.add(id));
  }

  /** The conversations that waited for this sandbox: they wait no more. */
  released(sandboxId: string): readonly string[] {
    const waiting = this.#waiting.get(sandboxId);
    this.#waiting.delete(sandboxId);
    return [...(waiting ?? [])];
  }

  /** Keeps the sandbox from being put to rest for want of activity; answers with the function that ends it. */
  keepAwake({ id, spec }: Sandbox): () => void {
    const { sandboxStore, clock, logger } = this.#deps;
    const touch = (): void => {
      sandboxStore.touch(id, clock.now()).catch((error: unknown) => logger.warn({ sandbox: id, error }, 'activity not noted'));
    };
    touch();
    return interval(clock, Math.max(100, Math.min(touchEveryMs, (spec.rest.freezeAfterMs ?? Infinity) / 2)), touch);
  }
}

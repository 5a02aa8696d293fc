import type { Conversation } from '../../domain/conversation.ts';
import { isFailureOf } from '../../domain/failure.ts';
import { activityIntervalMs } from '../../domain/idle-policy.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { findSandbox } from '../sandboxes/sandbox-records.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import { interval } from '../timers.ts';
import type { ConversationReconcilerDeps } from './conversation-reconciler.ts';

/** The sandboxes of conversations: finds, resumes and awaits them, and keeps them awake. */
export class ConversationSandboxes {
  readonly #deps: ConversationReconcilerDeps;
  /** Conversations that wait for a change of their sandbox, by its id. */
  readonly #waiting = new Map<string, Set<string>>();

  constructor(deps: ConversationReconcilerDeps) {
    this.#deps = deps;
  }

  find({ ownerId, sandboxId }: Conversation): Promise<Sandbox | null> {
    return findSandbox(this.#deps.store, ownerId, sandboxId);
  }

  /** Returns true if the sandbox has another status than before, or had one meanwhile. */
  async hasChanged(conversation: Conversation, before: Sandbox): Promise<boolean> {
    const now = await this.find(conversation);
    return now?.status !== before.status || now.statusSince !== before.statusSince;
  }

  /** Resumes the sandbox. Throws the failures of `Sandboxes.resume` except `sandbox_busy`: the next step checks the sandbox again. */
  async resume({ ownerId, sandboxId }: Conversation): Promise<void> {
    try {
      await this.#deps.sandboxes.resume(ownerId, sandboxId, { code: 'woken_by_conversation' });
    } catch (error) {
      if (!isFailureOf(error, 'sandbox_busy')) throw error;
    }
  }

  /** Waits until the sandbox is reconciled. Returns true if its status has changed; if not, the conversation waits for a change. */
  async waitForChange(conversation: Conversation, from: Sandbox | null, signal: AbortSignal): Promise<boolean> {
    this.addWaiting(conversation);
    try {
      const { sandbox } = await raceSignal(this.#deps.sandboxReconciler.reconcile(conversation.sandboxId), signal);
      return sandbox?.status !== from?.status || sandbox?.deletedAt !== null;
    } catch (error) {
      if (signal.aborted) return true;
      throw error;
    }
  }

  /** Lets the conversation continue when its sandbox changes. */
  addWaiting({ id, sandboxId }: Conversation): void {
    const waiting = this.#waiting.get(sandboxId) ?? new Set();
    this.#waiting.set(sandboxId, waiting.add(id));
  }

  /** Returns the conversations that waited for this sandbox. They don't wait any more. */
  takeWaiting(sandboxId: string): readonly string[] {
    const waiting = this.#waiting.get(sandboxId);
    this.#waiting.delete(sandboxId);
    return [...(waiting ?? [])];
  }

  /** Keeps the sandbox awake until the result is disposed: it is not frozen as idle. */
  keepAwake(sandbox: Sandbox): Disposable {
    this.touch(sandbox);
    return this.keepAwakeWhile(sandbox, () => true);
  }

  /** Like {@link keepAwake}, but only while `isNeeded` returns true, and without a write at the beginning. */
  keepAwakeWhile(sandbox: Sandbox, isNeeded: () => boolean): Disposable {
    return interval(this.#deps.clock, activityIntervalMs(sandbox), () => {
      if (isNeeded()) this.touch(sandbox);
    });
  }

  /** Records activity of the sandbox. Does not wait for the write. */
  touch({ id }: Sandbox): void {
    const { store, clock, logger } = this.#deps;
    store.sandboxes.touch(id, clock.now()).catch((error: unknown) => {
      logger.warn({ sandbox: id, error }, 'the activity of a sandbox could not be written');
    });
  }
}

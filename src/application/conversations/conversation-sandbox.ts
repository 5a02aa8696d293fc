import type { Conversation } from '../../domain/conversation.ts';
import { isFailureOf } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { findSandbox } from '../sandboxes/sandbox-records.ts';
import { interval, unlessAborted } from '../timers.ts';
import type { ConversationReconcilerDeps } from './conversation-reconciler.ts';

/** How often the activity of a sandbox in use is written at least; twice in the time after which it would be frozen. */
const touchEveryMs = 30_000;

export class SandboxAccess {
  readonly #deps: ConversationReconcilerDeps;
  /** Conversations that wait for a change of their sandbox, by its id. */
  readonly #waiting = new Map<string, Set<string>>();

  constructor(deps: ConversationReconcilerDeps) {
    this.#deps = deps;
  }

  find({ ownerId, sandboxId }: Conversation): Promise<Sandbox | null> {
    return findSandbox(this.#deps.sandboxStore, ownerId, sandboxId);
  }

  /** Resumes the sandbox. Failures: those of `Sandboxes.resume` without `sandbox_busy`: then the next step looks at it again. */
  async resume({ ownerId, sandboxId }: Conversation): Promise<void> {
    try {
      await this.#deps.sandboxes.resume(ownerId, sandboxId);
    } catch (error) {
      if (!isFailureOf(error, 'sandbox_busy')) throw error;
    }
  }

  /** Waits until the sandbox is reconciled. Returns true if its status has changed; if not, the conversation waits for a change. */
  async moved(conversation: Conversation, from: Sandbox | null, signal: AbortSignal): Promise<boolean> {
    this.await(conversation);
    try {
      const { sandbox } = await unlessAborted(signal, this.#deps.sandboxReconciler.reconcile(conversation.sandboxId));
      return sandbox?.status !== from?.status || sandbox?.deletedAt !== null;
    } catch (error) {
      if (signal.aborted) return true;
      throw error;
    }
  }

  /** Lets the conversation continue when its sandbox changes. */
  await({ id, sandboxId }: Conversation): void {
    const waiting = this.#waiting.get(sandboxId) ?? new Set();
    this.#waiting.set(sandboxId, waiting.add(id));
  }

  /** Returns the conversations that waited for this sandbox. They don't wait any more. */
  released(sandboxId: string): readonly string[] {
    const waiting = this.#waiting.get(sandboxId);
    this.#waiting.delete(sandboxId);
    return [...(waiting ?? [])];
  }

  /** Keeps the sandbox from being frozen as idle, until it is disposed of. */
  keepAwake(sandbox: Sandbox): Disposable {
    this.touch(sandbox);
    return this.stayAwake(sandbox, () => true);
  }

  /** The same while that is needed, of a sandbox whose activity was just noted. */
  stayAwake(sandbox: Sandbox, isNeeded: () => boolean): Disposable {
    const everyMs = Math.max(100, Math.min(touchEveryMs, (sandbox.spec.rest.freezeAfterMs ?? Infinity) / 2));
    return interval(this.#deps.clock, everyMs, () => {
      if (isNeeded()) this.touch(sandbox);
    });
  }

  /** Notes that the sandbox is in use. Nobody waits. */
  touch({ id }: Sandbox): void {
    const { sandboxStore, clock, logger } = this.#deps;
    sandboxStore.touch(id, clock.now()).catch((error: unknown) => {
      logger.warn({ sandbox: id, error }, 'the activity of a sandbox could not be written');
    });
  }
}

import { isFailure } from '../../domain/failure.ts';
import type { Conversation, ConversationStartStatus } from '../../domain/conversation.ts';
import { advanceStart, decideStart } from '../../domain/conversation-start.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { Logger } from '../../ports/logger.ts';
import { KeyedRuns } from '../keyed-runs.ts';
import type { SandboxDriver } from '../sandboxes/driver.ts';
import { ownedOrNull, type Sandboxes } from '../sandboxes/sandboxes.ts';

export interface ConversationDriverParts {
  readonly store: ConversationStore;
  readonly sandboxes: Sandboxes;
  readonly sandboxDriver: SandboxDriver;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Takes a conversation through the steps of its start, or of its end. Each step is written down before it is taken and
 * decided anew from what is written, so that a start goes on wherever an earlier process left it.
 */
export class ConversationDriver {
  readonly #parts: ConversationDriverParts;
  readonly #runs: KeyedRuns<Conversation | null>;
  readonly #closing = Promise.withResolvers<null>();
  #closed = false;

  constructor(parts: ConversationDriverParts) {
    this.#parts = parts;
    this.#runs = new KeyedRuns((id) => this.#drive(id));
  }

  /** Drives the conversation until it rests or has to wait for its sandbox's runtime. */
  settle(id: string): Promise<Conversation | null> {
    return this.#runs.run(id);
  }

  /** Drives the conversation without anyone waiting for it. */
  nudge(id: string): void {
    this.settle(id).catch((error: unknown) => {
      this.#parts.logger.error({ conversation: id, error }, 'conversation not settled');
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.resolve(null);
    await this.#runs.drain();
  }

  async #drive(id: string): Promise<Conversation | null> {
    for (;;) {
      const conversation = await this.#parts.store.find(id);
      if (conversation === null || conversation.removedAt !== null || this.#closed) return conversation;
      const goesOn = conversation.deletedAt === null ? await this.#start(conversation) : await this.#end(conversation);
      if (!goesOn) return await this.#parts.store.find(id);
    }
  }

  /** Takes the next step of the start; false when there is none now. */
  async #start(conversation: Conversation): Promise<boolean> {
    const { sandboxes, sandboxDriver } = this.#parts;
    const { ownerId, sandboxId, sandboxSpecId } = conversation;
    const sandbox = await ownedOrNull(sandboxes, ownerId, sandboxId);
    const step = decideStart(conversation, sandbox);
    switch (step.kind) {
      case 'none':
        return false;
      case 'record':
        await this.#record(conversation, step.status, step.detail);
        return true;
      case 'start-sandbox':
        return await this.#orError(conversation, () => sandboxes.startAs(sandboxId, ownerId, sandboxSpecId));
      case 'resume-sandbox':
        return await this.#orError(conversation, () => sandboxes.resume(ownerId, sandboxId));
      case 'await-sandbox': {
        const settled = await Promise.race([sandboxDriver.settle(sandboxId), this.#closing.promise]);
        return settled !== null && settled.sandbox?.status !== sandbox?.status;
      }
    }
  }

  /** Takes the step; where it is refused, that is the end of the start. */
  async #orError(conversation: Conversation, step: () => Promise<Sandbox>): Promise<boolean> {
    try {
      await step();
    } catch (error) {
      if (!isFailure(error) || error.code === 'store_unavailable') throw error;
      await this.#record(conversation, 'ERROR', error.message);
    }
    return true;
  }

  async #record(conversation: Conversation, status: ConversationStartStatus, detail: string | null): Promise<void> {
    const { store, clock, logger } = this.#parts;
    const next = advanceStart(conversation, status, detail, clock.now());
    if (next === null) return;
    const { kind } = await store.replace(next);
    if (kind === 'stale') return;
    logger.info({ conversation: next.id, from: conversation.startStatus, to: status, detail }, 'conversation moved');
  }

  /** Ends a deleted conversation: its sandbox goes too if no other conversation uses it. */
  async #end(conversation: Conversation): Promise<boolean> {
    const { store, sandboxes, clock } = this.#parts;
    const { ownerId, sandboxId } = conversation;
    if ((await store.countUsing(sandboxId)) === 0 && (await ownedOrNull(sandboxes, ownerId, sandboxId)) !== null) {
      await sandboxes.delete(ownerId, sandboxId);
    }
    const now = clock.now();
    await store.replace({ ...conversation, removedAt: now, generation: conversation.generation + 1, updatedAt: now });
    return true;
  }
}

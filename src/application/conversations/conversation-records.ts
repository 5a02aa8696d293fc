import type { Conversation } from '../../domain/conversation.ts';
import { type EventActor, type EventBody, eventOf, statusEvents } from '../../domain/event.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { IdempotencyClaim, ClaimOutcome } from '../../ports/idempotency-claim.ts';
import type { Logger } from '../../ports/logger.ts';

/** What becomes of a record, and what its log tells of it besides its statuses, which tell themselves. */
export interface Changed {
  readonly to: Partial<Omit<Conversation, 'id' | 'ownerId' | 'version' | 'updatedAt'>>;
  readonly actor: EventActor;
  /** Why, in words. */
  readonly reason: string | null;
  /** Before what the statuses tell. */
  readonly events?: readonly EventBody[];
}

/** Decides on the record as it is now; null leaves it so. */
export type Change = (conversation: Conversation) => Changed | null;

export type WriteOutcome = { readonly kind: 'written'; readonly conversation: Conversation } | { readonly kind: 'left' } | ClaimOutcome;

/** The records of conversations, and every write of one: by compare-and-set, with its events in the same write. */
export class ConversationRecords {
  readonly #store: ConversationStore;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(store: ConversationStore, clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The record, a deleted one too; null when there is none. */
  find(id: string): Promise<Conversation | null> {
    return this.#store.find(id);
  }

  /** Decides anew until the write meets the record that it was decided on. Answers with what was written; null where nothing was. */
  async change(id: string, change: Change): Promise<Conversation | null> {
    const outcome = await this.write(id, change);
    return outcome.kind === 'written' ? outcome.conversation : null;
  }

  /** The same under a claim; answers with what that says where it was made before. */
  async write(id: string, change: Change, claim?: IdempotencyClaim): Promise<WriteOutcome> {
    for (;;) {
      const from = await this.#store.find(id);
      const changed = from === null ? null : change(from);
      if (from === null || changed === null) return { kind: 'left' };
      const at = this.#clock.now();
      const to: Conversation = { ...from, ...changed.to, version: from.version + 1, updatedAt: at };
      const origin = { at, actor: changed.actor, reason: changed.reason };
      const events = [...(changed.events ?? []).map((body) => eventOf(to, body, origin)), ...statusEvents(from, to, origin)];
      const outcome = await this.#store.replace(to, events, claim);
      if (outcome.kind === 'stale') continue;
      if (outcome.kind !== 'replaced') return outcome;
      this.#log(from, to);
      return { kind: 'written', conversation: to };
    }
  }

  #log(from: Conversation, to: Conversation): void {
    if (from.startStatus === to.startStatus && from.executionStatus === to.executionStatus) return;
    const moved = { conversation: to.id, from: from.startStatus, to: to.startStatus, execution: to.executionStatus };
    this.#logger.info({ ...moved, detail: to.statusDetail }, 'conversation moved');
  }
}

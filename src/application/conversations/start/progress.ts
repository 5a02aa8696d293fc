import type { ConversationStartStatus } from '../../../domain/conversation.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { ConversationRecords } from '../records.ts';

/**
 * Writes what a long step tells into `status_detail`, the newest word only, and not too often. A word that can't be
 * written is left out: the step matters, not the word.
 */
export class StepProgress {
  readonly #write: (detail: string) => Promise<unknown>;
  readonly #clock: Clock;
  readonly #everyMs: number;
  #next: string | null = null;
  #writing: Promise<unknown> = Promise.resolve();
  #cancel: (() => void) | null = null;
  #ended = false;

  constructor(records: ConversationRecords, id: string, step: ConversationStartStatus, clock: Clock, everyMs: number) {
    this.#write = (detail) =>
      records.change(id, (conversation) =>
        conversation.startStatus === step && conversation.deletedAt === null && conversation.statusDetail !== detail
          ? { to: { statusDetail: detail }, actor: 'skep', reason: null }
          : null,
      );
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  tell(detail: string): void {
    if (this.#ended) return;
    this.#next = detail;
    if (this.#cancel === null) this.#flush();
  }

  /** Answers when nothing is on its way any more. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#cancel?.();
    await this.#writing;
  }

  #flush(): void {
    const detail = this.#next;
    this.#next = null;
    this.#cancel = null;
    if (detail === null) return;
    this.#cancel = this.#clock.after(this.#everyMs, () => this.#flush());
    this.#writing = this.#writing.then(() => this.#write(detail)).catch(() => {});
  }
}

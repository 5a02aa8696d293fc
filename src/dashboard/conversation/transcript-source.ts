import { signal } from '@preact/signals';
import type { api } from '../../client/index.ts';
import { followEvents } from '../live-resources.ts';
import { currentSession } from '../session.ts';
import { Transcript } from './transcript.ts';

/** The ids of the log that are read first. Grows with each step back that finds too few events: other conversations use ids too. */
const firstSpan = 1500;
const enoughEvents = 100;

/** All kinds except chunks, because older messages are complete. */
const olderKinds = [
  'message', 'tool_call', 'plan', 'usage', 'permission_requested', 'permission_answered', 'turn_started', 'turn_ended', 'work_tree_changed',
  'start_step', 'execution_changed', 'setup_script', 'microagents', 'sandbox_moved', 'conversation_archived',
] as const;

/** Reads the end of a conversation's log, follows it, and reads older parts. */
export class TranscriptSource {
  readonly #transcript = new Transcript();
  /** A new object whenever there is something new to draw, at most once a frame. The transcript in it is always the same. */
  readonly log = signal({ transcript: this.#transcript, ...this.#transcript.arranged() });
  /** Why the log is not up to date; null if it is. */
  readonly error = signal<Error | null>(null);
  /** The id after which events are read; 0 if there are no older ones. */
  readonly firstId = signal(0);
  readonly #id: string;
  readonly #onState: () => void;
  #waiting: api.Event[] = [];
  #span = firstSpan;
  #isReading = false;

  /** Calls `onState` when the conversation itself has changed. */
  constructor(id: string, onState: () => void) {
    this.#id = id;
    this.#onState = onState;
  }

  /** Follows the log while the page is visible. Returns a function that stops this. */
  follow(): () => void {
    return followEvents(this.#id, (latest) => (this.firstId.value = Math.max(0, latest - firstSpan)), (event) => {
      if (this.#waiting.push(event) === 1) requestAnimationFrame(() => this.#apply());
    }, (error) => {
      this.error.value = error;
      // If the conversation was deleted, the log ends before its last event.
      if (error !== null) this.#onState();
    });
  }

  /** Reads events before the first row, in growing steps until there are enough to show. */
  async readOlder(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const older: api.Event[] = [];
      let first = this.firstId.value;
      while (older.length < enoughEvents && first > 0) {
        const from = Math.max(0, first - this.#span);
        older.unshift(...await this.#eventsBetween(from, first));
        first = from;
        if (older.length < enoughEvents) this.#span *= 4;
      }
      this.#transcript.prepend(older);
      this.firstId.value = first;
      this.#draw();
    } finally {
      this.#isReading = false;
    }
  }

  async #eventsBetween(after: number, last: number): Promise<api.Event[]> {
    const input = { path: { id: this.#id }, query: { after, kinds: olderKinds, limit: 100 } };
    const events: api.Event[] = [];
    for await (const event of currentSession().client.items('GET /api/v1/app-conversations/{id}/events', input)) {
      if (event.id > last) break;
      events.push(event);
    }
    return events;
  }

  #apply(): void {
    const events = this.#waiting;
    this.#waiting = [];
    for (const event of events) this.#transcript.apply(event);
    this.#draw();
    if (events.some(({ kind }) => !kind.startsWith('message') && kind !== 'tool_call' && kind !== 'usage')) this.#onState();
  }
  #draw(): void {
    this.log.value = { transcript: this.#transcript, ...this.#transcript.arranged() };
  }
}

import { styleText } from 'node:util';
import { harmless, harmlessLine } from '../../client/client.ts';
import type { ShownEvent } from '../../client/events.ts';

/** Where a transcript is written. */
export interface Screen {
  write(text: string): void;
  /** May text be styled? */
  readonly colored: boolean;
}

type Style = 'dim' | 'bold';
type Whole = Exclude<ShownEvent, { kind: 'message_chunk' }>;

/** What a terminal shows of events as they come: parts of messages run on, everything else has a line of its own. */
export class Transcript {
  readonly #screen: Screen;
  /** Messages whose parts were shown, and whose whole was not told yet. */
  readonly #inParts = new Set<string>();
  #open: string | null = null;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  show(event: ShownEvent): void {
    if (event.kind === 'message_chunk') this.#part(event.data);
    else for (const line of this.#lines(event)) this.line(line);
  }

  /** Shows a line of its own. */
  line(text: string): void {
    this.#close();
    this.#screen.write(`${text}\n`);
  }

  #part({ message_id, channel, text }: { readonly message_id: string; readonly channel: string; readonly text: string }): void {
    const key = `${message_id}/${channel}`;
    if (this.#open !== key) this.#close();
    this.#open = key;
    this.#inParts.add(message_id);
    this.#screen.write(this.#said(channel, text));
  }

  #close(): void {
    if (this.#open !== null) this.#screen.write('\n');
    this.#open = null;
  }

  #lines(event: Whole): string[] {
    const why = event.reason === null ? '' : `: ${harmlessLine(event.reason)}`;
    switch (event.kind) {
      case 'message': {
        const { role, channel, text, message_id } = event.data;
        if (role === 'user') return [this.#style('bold', `> ${harmless(text)}`)];
        if (!this.#inParts.delete(message_id)) return [this.#said(channel, text)];
        this.#close();
        return [];
      }
      case 'tool_call': {
        const { title, status, paths } = event.data;
        return [this.#faint(`[${status}] ${title}${paths.length === 0 ? '' : ` (${paths.join(', ')})`}`)];
      }
      case 'plan':
        return event.data.entries.map(({ content, status }) => this.#faint(`${status === 'completed' ? 'x' : '-'} ${content}`));
      case 'permission_requested': {
        const { title, options } = event.data;
        return [
          this.#style('bold', `The agent asks leave: ${harmlessLine(title)}`),
          ...options.map(({ name }, index) => `  ${index + 1}  ${harmlessLine(name)}`),
        ];
      }
      case 'permission_answered':
        return [this.#faint(event.data.option_id === null ? `the request was withdrawn${why}` : `answered: ${event.data.option_id}${why}`)];
      case 'turn_ended':
        return event.data.stop_reason === 'end_turn' ? [] : [this.#faint(`the turn ended: ${event.data.stop_reason}${why}`)];
      case 'start_step':
        return [this.#faint(`${event.data.to}${why}`)];
      case 'agent_started':
        return [this.#faint(`the agent has started${why}`)];
      case 'sandbox_moved':
        return [this.#faint(`its sandbox is ${event.data.to ?? 'gone'}${why}`)];
      case 'conversation_deleted':
        return [this.#faint('the conversation was ended')];
    }
  }

  #said(channel: string, text: string): string {
    return channel === 'thought' ? this.#style('dim', harmless(text)) : harmless(text);
  }

  #faint(text: string): string {
    return this.#style('dim', `  ${harmlessLine(text)}`);
  }

  #style(style: Style, text: string): string {
    return this.#screen.colored ? styleText(style, text, { validateStream: false }) : text;
  }
}

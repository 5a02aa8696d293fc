import { styleText } from 'node:util';
import type { api, SkepClient } from '../../client/index.ts';
import { followOptions, type JsonOption, printBody } from './console.ts';
import { safeLine, safeText } from './safe-text.ts';
import { contentLines, titleLines } from './tool-call-text.ts';

export interface Screen {
  write(text: string): void;
  readonly colored: boolean;
  /** Whether each event is printed as a line of JSON, for programs. */
  readonly json: boolean;
}

/** Every event except chunks. A newer server can send further kinds. */
type CompleteEvent = Exclude<api.Event, { kind: 'message_chunk' }>;

/** Prints events as they come. Chunks of a message follow each other on one line; everything else has its own line. */
export class EventPrinter {
  readonly #screen: Screen;
  /** Messages whose chunks were printed, but whose complete event has not arrived yet. */
  readonly #chunked = new Set<string>();
  /** The tool calls of the turn that have not ended, by id. */
  readonly #calls = new Map<string, api.ToolCallEventData>();
  /** The message and channel of the unfinished line; null if there is none. */
  #openLine: string | null = null;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  show(event: api.Event): void {
    if (this.#screen.json) this.#screen.write(`${JSON.stringify(event)}\n`);
    else if (event.kind === 'message_chunk') this.#chunk(event.data);
    else for (const line of this.#lines(event)) this.line(line);
  }

  line(text: string): void {
    if (this.#screen.json) {
      process.stderr.write(`${text}\n`);
      return;
    }
    this.#closeLine();
    this.#screen.write(`${text}\n`);
  }

  #chunk({ message_id, channel, text }: { readonly message_id: string; readonly channel: string; readonly text: string }): void {
    const key = `${message_id}/${channel}`;
    if (this.#openLine !== key) this.#closeLine();
    this.#openLine = key;
    this.#chunked.add(message_id);
    this.#screen.write(this.#messageText(channel, text));
  }

  #closeLine(): void {
    if (this.#openLine !== null) this.#screen.write('\n');
    this.#openLine = null;
  }

  #lines(event: CompleteEvent): string[] {
    const because = event.reason === null ? '' : `: ${safeLine(event.reason)}`;
    // Users other than the owner are named.
    const other = event.user_id === event.owner_id ? null : event.user_id;
    const by = other === null ? '' : `, by ${other}`;
    switch (event.kind) {
      case 'message': {
        const { role, channel, text, message_id } = event.data;
        if (role === 'user') return [this.#style('bold', `${other === null ? '' : safeLine(other)}> ${safeText(text)}`)];
        if (!this.#chunked.delete(message_id)) return [this.#messageText(channel, text)];
        this.#closeLine();
        return [];
      }
      case 'tool_call':
        return this.#toolCallLines(event);
      case 'plan':
        return event.data.entries.map(({ content, status }) => this.#dimLine(`${status === 'completed' ? 'x' : '-'} ${content}`));
      case 'permission_requested':
        return this.#questionLines(event);
      case 'permission_answered':
        return [this.#dimLine(`answer: ${event.data.option_id ?? 'none, the request was withdrawn'}${by}${because}`)];
      case 'turn_ended':
        this.#calls.clear();
        return event.data.stop_reason === 'end_turn' ? [] : [this.#dimLine(`the turn ended: ${event.data.stop_reason}${because}`)];
      case 'start_step':
        return [this.#dimLine(`${event.data.to}${because}`)];
      case 'setup_script': {
        const { status, execution_id: execution } = event.data;
        return [this.#dimLine(`setup script: ${status}${execution === null ? '' : `, as ${execution}`}`)];
      }
      case 'agent_started':
        return [this.#dimLine(`the agent has started${because}`)];
      case 'sandbox_moved':
        return [this.#dimLine(`its sandbox is ${event.data.to ?? 'gone'}${because}`)];
      case 'conversation_archived':
        return [this.#dimLine('the conversation was archived')];
      case 'conversation_deleted':
        return [this.#dimLine('the conversation was ended')];
      case 'usage':
      case 'turn_started':
      case 'work_tree_changed':
      case 'microagents':
      case 'execution_changed':
      default:
        return [];
    }
  }

  /** A call that failed is shown with its reason. The content of others is shown if the agent asks for permission. */
  #toolCallLines({ data, conversation_id: id }: api.ToolCallEvent): string[] {
    const { tool_call_id: callId, title, status, paths, content } = data;
    if (status === 'completed' || status === 'failed') this.#calls.delete(callId);
    else this.#calls.set(callId, data);
    const reasons = status === 'failed' ? content.filter(({ type }) => type === 'text') : [];
    return [
      this.#dimLine(`[${status}] ${title}${paths.length === 0 ? '' : ` (${paths.join(', ')})`}`),
      ...contentLines(reasons, id),
    ];
  }

  /** The content of the call comes first, because it is what the user allows. */
  #questionLines({ data: { tool_call_id: callId, title, options }, conversation_id: id }: api.PermissionRequestedEvent): string[] {
    const [question = '', ...more] = titleLines('The agent asks for permission', title, id);
    return [
      ...contentLines(this.#calls.get(callId)?.content ?? [], id),
      this.#style('bold', question),
      ...more,
      ...options.map(({ name }, index) => `  ${index + 1}  ${safeLine(name)}`),
    ];
  }

  #messageText(channel: string, text: string): string {
    return channel === 'thought' ? this.#style('dim', safeText(text)) : safeText(text);
  }

  #dimLine(text: string): string {
    return this.#style('dim', `  ${safeLine(text)}`);
  }

  #style(style: 'dim' | 'bold', text: string): string {
    return this.#screen.colored ? styleText(style, text, { validateStream: false }) : text;
  }
}

/** Prints the events of a conversation from the beginning, until the conversation is deleted or the signal fires. */
export async function followConversation(client: SkepClient, id: string, { json }: JsonOption, signal: AbortSignal): Promise<void> {
  const { stdout } = process;
  const colored = stdout.isTTY && stdout.hasColors();
  const printer = new EventPrinter({ write: (text) => stdout.write(text), colored, json: json === true });
  const events = client.events({ conversation: id, ...followOptions(signal) });
  for await (const event of events) printer.show(event);
}

/** Prints status changes of sandboxes from now on, until the signal fires. */
export async function followSandboxes(client: SkepClient, { json = false }: JsonOption, signal: AbortSignal): Promise<void> {
  const events = client.events({ kinds: ['sandbox_moved'], ...followOptions(signal) });
  for await (const event of events) {
    if (event.kind !== 'sandbox_moved') continue;
    const { at, sandbox_id, reason, data } = event;
    const tier = data.pause_kind === null ? '' : ` (${data.pause_kind})`;
    const line = `${at} ${sandbox_id ?? '-'} ${data.from ?? 'new'} -> ${data.to ?? 'gone'}${tier} ${reason ?? ''}`;
    process.stdout.write(`${json ? JSON.stringify(event) : safeLine(line)}\n`);
  }
}

export async function showTranscript(client: SkepClient, id: string, { json }: JsonOption, signal: AbortSignal): Promise<void> {
  const query = { format: json === true ? 'json' : 'markdown' } as const;
  const { body } = await client.stream('GET /api/v1/app-conversations/{id}/transcript', { path: { id }, query, signal });
  await printBody(body);
}

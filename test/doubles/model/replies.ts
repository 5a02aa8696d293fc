/**
 * The reply of the model to one request.
 *
 * - `text`: sends the text in a few pieces. With `thought`, sends that first. With `stall`, sends nothing more afterwards.
 * - `tool`: calls the tool with these arguments, after `text` if there is any.
 * - `status`: fails with this HTTP status and message.
 */
export type ModelReply =
  | { readonly text: string; readonly thought?: string; readonly stall?: true }
  | { readonly tool: string; readonly arguments: Readonly<Record<string, unknown>>; readonly text?: string }
  | { readonly status: number; readonly message: string };

export interface ChatMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  readonly content?: string | readonly { readonly type: string; readonly text?: string }[] | null;
  readonly tool_call_id?: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

/**
 * Returns the text of a message that makes the model send these replies, one for each request of the agent. The messages hold the
 * script, so any number of conversations can run at the same time.
 */
export function modelScript(...replies: readonly ModelReply[]): string {
  return JSON.stringify({ replies });
}

/** Returns the next reply of the script in the user's last message. Without a script: `ok`. Without tools: a title. */
export function replyTo({ messages, tools = [] }: ChatRequest): ModelReply {
  if (tools.length === 0) return { text: 'A title' };
  const asked = messages.findLastIndex((message) => message.role === 'user' && textOf(message).includes('{"replies":'));
  const message = messages[asked];
  if (message === undefined) return { text: 'ok' };
  const { replies } = JSON.parse(scriptIn(textOf(message))) as { readonly replies: readonly ModelReply[] };
  const done = messages.slice(asked).filter(({ role }) => role === 'assistant').length;
  return replies[done] ?? { text: 'done' };
}

export function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => text ?? '').join('');
}

/** Agents add their own text to the user's message. */
function scriptIn(text: string): string {
  return text.slice(text.indexOf('{"replies":'), text.lastIndexOf(']}') + 2);
}

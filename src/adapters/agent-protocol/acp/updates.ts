import { LRUCache } from 'lru-cache';
import type { ToolCall, ToolCallContent } from '../../../domain/agent.ts';
import { plainText } from '../../../domain/plain-text.ts';
import type { AgentUpdate } from '../../../ports/agent-protocol.ts';
import type { Block, WireToolCall, WireToolCallContent, WireUpdate } from './schema.ts';

/** Returns the update in the port's form. Null if there is nothing to show. */
export function updateOf(update: WireUpdate, calls: ToolCalls): AgentUpdate | null {
  switch (update.sessionUpdate) {
    case 'agent_message_chunk':
    case 'agent_thought_chunk': {
      const channel = update.sessionUpdate === 'agent_message_chunk' ? 'answer' : 'thought';
      const text = textOf(update.content);
      return text === '' ? null : { kind: 'message_chunk', channel, messageId: update.messageId ?? null, text };
    }
    case 'tool_call':
    case 'tool_call_update':
      return { kind: 'tool_call', call: mergeToolCall(calls, update) };
    case 'plan':
      return { kind: 'plan', entries: update.entries.map((entry) => ({ ...entry, content: plainText(entry.content) })) };
    case 'usage_update':
      return { kind: 'usage', usedTokens: update.used, contextTokens: update.size, cost: update.cost ?? null };
  }
}

const maxCallsSize = 32 * 1024 * 1024;

/** The current state of a turn's tool calls, because an update contains only the changes. */
type ToolCalls = ReturnType<typeof createToolCalls>;

interface KnownCall {
  readonly call: ToolCall;
  /** The content of the call without `output`. */
  readonly content: readonly ToolCallContent[];
  /** The text of its raw output, unless its content came later or together with it. */
  readonly output: string;
}

/** The memory is bounded. A dropped call starts empty with its next update. */
export function createToolCalls() {
  return new LRUCache<string, KnownCall>({ maxSize: maxCallsSize, sizeCalculation: sizeOf });
}

export function mergeToolCall(calls: ToolCalls, update: WireToolCall): ToolCall {
  const { toolCallId, title, kind, status, locations } = update;
  const known = calls.get(toolCallId);
  const content = update.content?.map(contentOf) ?? known?.content ?? [];
  const output = outputOf(update) ?? known?.output ?? '';
  const call: ToolCall = {
    toolCallId,
    title: title === null || title === undefined || title === '' ? (known?.call.title ?? toolCallId) : plainText(title),
    toolKind: kind ?? known?.call.toolKind ?? 'other',
    status: status ?? known?.call.status ?? 'pending',
    paths: locations?.map(({ path }) => path) ?? known?.call.paths ?? [],
    content: output === '' || isChange(content) ? content : [...content, { type: 'text', text: output }],
  };
  calls.set(toolCallId, { call, content, output });
  return call;
}

/** Agents that report the result of a call as content, report it as raw output, too. Codex reports that of a command only as the latter. */
function outputOf({ content, rawOutput }: WireToolCall): string | null {
  if (content !== null && content !== undefined && content.length > 0) return '';
  return rawOutput === null || rawOutput === undefined ? null : plainText(rawOutput);
}

/** The diff shows what was done. The raw output is a sentence for the model. */
function isChange(content: readonly ToolCallContent[]): boolean {
  return content.some(({ type }) => type === 'diff');
}

function sizeOf({ call: { toolCallId, title, toolKind, paths, content }, output }: KnownCall): number {
  const parts = content.map((part) => (part.type === 'text' ? [part.text] : [part.path, part.newText, part.oldText ?? '']));
  return [toolCallId, title, toolKind, ...paths, ...parts.flat(), output].reduce((size, text) => size + 100 + text.length, 500);
}

/** Returns the text of a block, or a name for content that is not text. */
function textOf({ type, text, mimeType, name, uri, resource }: Block): string {
  if (type === 'text') return plainText(text ?? '');
  const what = name ?? resource?.uri ?? uri ?? mimeType;
  const kind = type === 'resource_link' ? 'resource' : type;
  return plainText(what === null || what === undefined ? `[${kind}]` : `[${kind}: ${what}]`);
}

/** The texts of a changed file stay exactly as they are. */
function contentOf(content: WireToolCallContent): ToolCallContent {
  switch (content.type) {
    case 'content':
      return { type: 'text', text: textOf(content.content) };
    case 'diff':
      return { type: 'diff', path: content.path, oldText: content.oldText ?? null, newText: content.newText };
    case 'other':
      return { type: 'text', text: `[${plainText(content.name)}]` };
  }
}

const maxLine = 2000;

export function oneLine(text: string, maxLength = maxLine): string {
  const line = plainText(text).replace(/\s+/gu, ' ').trim();
  return line.length > maxLength ? `${line.slice(0, maxLength)}...` : line;
}

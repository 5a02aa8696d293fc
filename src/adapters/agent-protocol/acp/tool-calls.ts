import type { ToolCall } from '../../../domain/agent.ts';
import { contentOf } from './content.ts';
import type { WireToolCall } from './schema.ts';
import { plain } from './text.ts';

const maxHeld = 32 * 1024 * 1024;

/**
 * The tool calls of a turn as they stand: an update says only what changed. What is held for them is bounded; a call that
 * was forgotten begins anew with its next update.
 */
export class ToolCalls {
  readonly #calls = new Map<string, { readonly call: ToolCall; readonly size: number }>();
  #held = 0;

  get(toolCallId: string): ToolCall | null {
    return this.#calls.get(toolCallId)?.call ?? null;
  }

  merge({ toolCallId, title, kind, status, content, locations }: WireToolCall): ToolCall {
    const known = this.get(toolCallId);
    const call: ToolCall = {
      toolCallId,
      title: title === null || title === undefined || title === '' ? (known?.title ?? toolCallId) : plain(title),
      toolKind: kind ?? known?.toolKind ?? 'other',
      status: status ?? known?.status ?? 'pending',
      paths: locations?.map(({ path }) => path) ?? known?.paths ?? [],
      content: content?.map(contentOf) ?? known?.content ?? [],
    };
    this.#forget(toolCallId);
    this.#hold(call);
    return call;
  }

  clear(): void {
    this.#calls.clear();
    this.#held = 0;
  }

  #hold(call: ToolCall): void {
    const size = sizeOf(call);
    for (const oldest of this.#calls.keys()) {
      if (this.#held + size <= maxHeld) break;
      this.#forget(oldest);
    }
    this.#calls.set(call.toolCallId, { call, size });
    this.#held += size;
  }

  #forget(toolCallId: string): void {
    this.#held -= this.#calls.get(toolCallId)?.size ?? 0;
    this.#calls.delete(toolCallId);
  }
}

/** About how much memory it takes: characters, and something for each part. */
function sizeOf({ toolCallId, title, paths, content }: ToolCall): number {
  let size = 500 + toolCallId.length + title.length;
  for (const path of paths) size += 100 + path.length;
  for (const part of content) size += 100 + (part.type === 'text' ? part.text.length : part.path.length + part.newText.length + (part.oldText?.length ?? 0));
  return size;
}

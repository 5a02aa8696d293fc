import type { MessageChannel, PlanEntry, ToolCall, TurnStopReason } from '../../src/domain/agent.ts';
import type { Message } from '../../src/domain/conversation.ts';
import type { AgentPermission } from '../../src/ports/agent-protocol.ts';

/** The changed fields of a tool call. The other fields stay unchanged. */
export type ToolCallChange = Pick<ToolCall, 'toolCallId'> & Partial<ToolCall>;

export interface AgentUsage {
  readonly usedTokens: number;
  readonly contextTokens: number;
  readonly cost: { readonly amount: number; readonly currency: string } | null;
}

/**
 * A step of an agent in a turn.
 *
 * - `ask`: requests permission, and then says `chosen: <option>`, or `chosen: nothing` if the request was withdrawn. If the turn is
 *   cancelled meanwhile, it ends there as `cancelled`.
 * - `flood`: says this many chunks, one after the other: `0`, `1`, `2`...
 * - `fail`: the turn ends with an error that has this message.
 * - `crash`: the agent ends.
 * - `stall`: says `stalling.` and waits. `heeds` ends the turn as `cancelled` when it is cancelled. `deaf` waits for ever. The text ends
 *   with a character that begins no secret, because the beginning of a secret is held back until more text comes.
 * - `after`: what the agent does by itself after the turn.
 * - `stop`: ends the turn with this stop reason. Without this step, the turn ends as `end_turn` after the last step.
 */
export type AgentStep =
  | { readonly say: string; readonly channel?: MessageChannel; readonly messageId?: string }
  | { readonly tool: ToolCallChange }
  | { readonly plan: readonly PlanEntry[] }
  | { readonly usage: AgentUsage }
  | { readonly ask: AgentPermission }
  | { readonly flood: number }
  | { readonly fail: string }
  | { readonly crash: true }
  | { readonly stall: 'heeds' | 'deaf' }
  | { readonly after: readonly AgentStep[] }
  | { readonly stop: TurnStopReason };

/** Returns a message with the steps for a scripted agent. */
export function scripted(...steps: readonly AgentStep[]): Message {
  return { content: [{ type: 'text', text: JSON.stringify({ steps }) }] };
}

/** Returns the steps in the text of a message. Without steps in the text, the agent says `heard: <text>`. */
export function stepsOf(text: string): readonly AgentStep[] {
  if (!text.startsWith('{"steps":')) return [{ say: `heard: ${text}` }];
  return (JSON.parse(text) as { readonly steps: readonly AgentStep[] }).steps;
}

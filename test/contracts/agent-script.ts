import type { MessageChannel, PlanEntry, ToolCall, TurnStopReason } from '../../src/domain/agent.ts';
import type { Message } from '../../src/domain/conversation.ts';
import type { AgentPermission } from '../../src/ports/agent-protocol.ts';

/** What has changed of a tool call; the rest stays as it was. */
export type ToolCallChange = Pick<ToolCall, 'toolCallId'> & Partial<ToolCall>;

export interface AgentUsage {
  readonly usedTokens: number;
  readonly contextTokens: number;
  readonly cost: { readonly amount: number; readonly currency: string } | null;
}

/**
 * What an agent does in a turn.
 *
 * - `ask`: asks leave, and then says `chosen: <option>`, or `chosen: nothing` where the request was withdrawn. A turn that is
 *   cancelled meanwhile ends there as `cancelled`.
 * - `flood`: says so many chunks, one after the other: `0`, `1`, `2`...
 * - `fail`: the turn ends with an error that says these words.
 * - `crash`: the agent ends.
 * - `stall`: says `stalling.` and goes on only when the turn is cancelled, which ends it as `cancelled` (`heeds`); or never (`deaf`).
 *   The text ends with a character that begins no secret: what may be the beginning of one is held back until more is said.
 * - `stop`: ends the turn for the reason; without it, it ends as `end_turn` after the last step.
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
  | { readonly stop: TurnStopReason };

/** A message whose text tells a scripted agent what to do. */
export function scripted(...steps: readonly AgentStep[]): Message {
  return { content: [{ type: 'text', text: JSON.stringify({ steps }) }] };
}

/** The steps that a message tells; one that tells none is answered with `heard: <its text>`. */
export function stepsOf(text: string): readonly AgentStep[] {
  if (!text.startsWith('{"steps":')) return [{ say: `heard: ${text}` }];
  return (JSON.parse(text) as { readonly steps: readonly AgentStep[] }).steps;
}

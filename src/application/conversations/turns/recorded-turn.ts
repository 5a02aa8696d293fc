import type { Conversation, TurnPosition } from '../../../domain/conversation.ts';
import type { Event } from '../../../domain/event.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import { agentOutputKinds, outputAmount } from './turn-recorder.ts';

/** The part of a turn that an earlier process ran. */
export interface RecordedTurn {
  readonly agent: TurnPosition;
  /** How much of the agent's output is in the log, see `outputAmount`. */
  readonly written: number;
  /** The permission requests by id. Null if there is no answer yet. */
  readonly permissions: ReadonlyMap<string, { readonly optionId: string | null } | null>;
  /** The sequence number of the newest event when the read began. */
  readonly to: number;
}

const pageSize = 1000;

/** Reads the part of the turn that an earlier process wrote into the log. */
export async function readRecordedTurn(
  events: EventStore, { id: conversationId, ownerId }: Conversation, agent: TurnPosition,
): Promise<RecordedTurn> {
  const to = await events.latest();
  const filter = { ownerId, conversationId, kinds: [...agentOutputKinds, 'permission_requested', 'permission_answered'] as const };
  const permissions = new Map<string, { readonly optionId: string | null } | null>();
  let written = 0;
  for (let after = agent.from, page: readonly Event[]; ; after = page.at(-1)?.sequence ?? after) {
    page = await events.read(filter, after, pageSize);
    for (const { kind, data } of page) {
      if (kind === 'permission_requested') permissions.set(data.permissionId, null);
      if (kind === 'permission_answered') permissions.set(data.permissionId, { optionId: data.optionId });
    }
    written += outputAmount(page);
    if (page.length < pageSize) return { agent, written, permissions, to };
  }
}

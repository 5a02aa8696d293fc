import type { EventActor, EventDraft } from './event.ts';
import { isPooled, type Sandbox } from './sandbox.ts';

/** What the log says of a write of a sandbox: the move, who caused it, and why. Of one in a pool nobody is told. */
export function movedEvents(from: Sandbox | null, to: Sandbox, actor: EventActor): readonly EventDraft[] {
  if (isPooled(to)) return [];
  return [
    {
      kind: 'sandbox_moved',
      at: to.updatedAt,
      ownerId: to.ownerId,
      conversationId: null,
      sandboxId: to.id,
      actor,
      reason: to.statusDetail,
      data: { from: from?.status ?? null, to: to.deletedAt === null ? to.status : null, pauseKind: to.pauseKind },
    },
  ];
}

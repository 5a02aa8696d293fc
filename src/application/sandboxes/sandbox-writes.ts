import { type EventActor, movedEvents } from '../../domain/event.ts';
import { type TransitionChange, move, type SandboxTransition } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { Logger } from '../../ports/logger.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';

export interface WriteDeps {
  readonly store: SandboxStore;
  readonly logger: Logger;
}

/** Writes what became of the sandbox, with its event; answers whether nobody else had written before. */
export async function writeMove({ store, logger }: WriteDeps, from: Sandbox, to: Sandbox, actor: EventActor): Promise<boolean> {
  const { kind } = await store.replace(to, movedEvents(from, to, actor));
  if (kind === 'stale') return false;
  logMove(logger, from, to, actor);
  return true;
}

/** Writes the move where the lifecycle has it. */
export async function recordMove(deps: WriteDeps, sandbox: Sandbox, event: SandboxTransition, change: TransitionChange, actor: EventActor): Promise<void> {
  const next = move(sandbox, event, change);
  if (next !== null) await writeMove(deps, sandbox, next, actor);
}

export function logMove(logger: Logger, from: Sandbox | null, to: Sandbox, actor: EventActor): void {
  const status = to.deletedAt === null ? to.status : 'deleted';
  const fields = { sandbox: to.id, from: from?.status ?? null, to: status, pause_kind: to.pauseKind, actor, detail: to.statusDetail };
  logger.info(fields, 'sandbox moved');
}

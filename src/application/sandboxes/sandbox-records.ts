import { isWorking } from '../../domain/conversation-next-step.ts';
import type { Conversation } from '../../domain/conversation.ts';
import { type EventActor, type EventOrigin, sandboxMovedEvents } from '../../domain/event.ts';
import { Failure, isDamagedRecord, isFailureOf, logFieldsOf } from '../../domain/failure.ts';
import { applyTransition, reasonOfRequest, type SandboxTransition, type TransitionChange } from '../../domain/sandbox-lifecycle.ts';
import { type Caller, isInScope, userIdOf } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import { isPooled, type Sandbox } from '../../domain/sandbox.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Store } from '../../ports/store.ts';
import type { CoreDeps } from '../use-cases.ts';
import type { SandboxDeps } from './sandboxes.ts';

/** Returns the sandbox; null if there is none in the scope, or it is deleted. */
export async function findSandbox(store: Store, caller: Caller | null, id: string): Promise<Sandbox | null> {
  const sandbox = await store.sandboxes.find(id);
  return sandbox === null || !isVisible(sandbox, caller) || sandbox.deletedAt !== null ? null : sandbox;
}

/** Returns true if callers with this scope see the sandbox. Nobody sees pool members. */
export function isVisible(sandbox: Sandbox, caller: Caller | null): boolean {
  return !isPooled(sandbox) && isInScope(sandbox.ownerId, caller);
}

/** Returns the sandbox. Throws `sandbox_not_found` if there is none in the scope, or it is deleted. */
export async function getSandbox(store: Store, caller: Caller | null, id: string): Promise<Sandbox> {
  const sandbox = await findSandbox(store, caller, id);
  if (sandbox === null) throw new Failure('sandbox_not_found', { id });
  return sandbox;
}

/**
 * Returns true if an agent or an execution works in the sandbox, or a conversation of it is damaged. Its record may say otherwise: activity
 * may have been lost.
 */
export async function isInUse(deps: SandboxDeps, sandbox: Sandbox): Promise<boolean> {
  const conversations = await findIntactUsers(deps, sandbox.id);
  return conversations === null || conversations.some(isWorking) || (await deps.executionReconciler.keepsAwake(sandbox));
}

/** The sandboxes with a damaged conversation that the log names. Sweeps find them again and again. */
const logged = new WeakMap<Store, Set<string>>();

/** Returns the conversations that use the sandbox; null if one is damaged, which must not stop the work on the sandbox. */
export async function findIntactUsers({ store, logger }: CoreDeps, sandboxId: string): Promise<readonly Conversation[] | null> {
  try {
    return await store.conversations.findUsing(sandboxId);
  } catch (error) {
    if (!isDamagedRecord(error)) throw error;
    const message = 'a sandbox has a damaged conversation, so it counts as in use, and its changes are not kept; restore it from a backup';
    const names = logged.get(store) ?? new Set();
    if (!names.has(sandboxId)) logger.warn({ sandbox: sandboxId, ...logFieldsOf(error) }, message);
    logged.set(store, names.add(sandboxId));
    return null;
  }
}

/** Returns who changes the sandbox, and why: Skep itself for the given reason, or the caller if there is none. */
export function originOf(
  change: 'resumed' | 'deleted', sandbox: Sandbox, caller: Caller, ownReason?: Reason,
): Required<Omit<EventOrigin, 'at'>> & { readonly reason: Reason } {
  if (ownReason !== undefined) return { actor: 'skep', userId: null, reason: ownReason };
  const userId = userIdOf(caller);
  return { actor: 'user', userId, reason: reasonOfRequest(change, sandbox, userId) };
}

/** Writes the changed sandbox with its event. `userId` is that of the event. Returns false if somebody else wrote first. */
export async function writeSandbox(
  { store, logger, startStatistics }: SandboxDeps, from: Sandbox, to: Sandbox, actor: EventActor, userId: string | null = null,
): Promise<boolean> {
  const { kind } = await store.sandboxes.replace(to, sandboxMovedEvents(from, to, actor, userId));
  if (kind === 'stale') return false;
  logStatusChange(logger, from, to, actor, userId);
  startStatistics.note(from, to);
  return true;
}

/** Writes the transition if the lifecycle has it. */
export async function recordTransition(
  deps: SandboxDeps,
  sandbox: Sandbox,
  transition: SandboxTransition,
  change: TransitionChange,
  actor: EventActor,
): Promise<void> {
  const next = applyTransition(sandbox, transition, actor, change);
  if (next !== null) await writeSandbox(deps, sandbox, next, actor);
}

export function logStatusChange(
  logger: Logger, from: Sandbox | null, to: Sandbox, actor: EventActor, userId: string | null = null,
): void {
  const status = to.deletedAt === null ? to.status : 'deleted';
  const moved = { sandbox: to.id, from: from?.status ?? null, to: status, pause_kind: to.pauseKind };
  const fields = { ...moved, actor, user: userId, reason: to.statusReason };
  const isLost = status === 'ERROR' || status === 'MISSING';
  logger[isLost ? 'warn' : 'info'](fields, 'sandbox changed its status');
}

/**
 * Does the work on the runtime. Failures get the id and status from the record. If the record says RUNNING but the sandbox does not run,
 * the failure says PAUSED. If the runtime does not have the sandbox, it says MISSING, unless the sandbox still starts or is in ERROR.
 */
export async function withRecordFailures<T>({ id, status }: Sandbox, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isGone = isFailureOf(error, 'sandbox_not_found');
    if (!isGone && !isFailureOf(error, 'sandbox_not_running')) throw error;
    const stopped = status === 'RUNNING' ? 'PAUSED' : status;
    const shown = isGone && status !== 'STARTING' && status !== 'ERROR' ? 'MISSING' : stopped;
    throw new Failure('sandbox_not_running', { id, status: shown }, { cause: error });
  }
}

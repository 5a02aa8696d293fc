import { type ChangeList, countChanges, type FileChange, type KeptChanges, maxKeptBytes } from '../../domain/change.ts';
import type { Conversation } from '../../domain/conversation.ts';
import { type EventActor, eventOf } from '../../domain/event.ts';
import { Failure, isFailureOf, reasonOfError } from '../../domain/failure.ts';
import type { Reason, ReasonOf } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { SnapshotRefusal, type WorkTreeSnapshot } from '../../ports/work-tree-snapshot.ts';
import { findIntactUsers, findSandbox } from '../sandboxes/sandbox-records.ts';
import { timeout } from '../timers.ts';
import { type ChangeDeps, type ConversationWorkTree, findWorkTree, getStartPoint, takeSnapshot } from './conversation-work-tree.ts';

/** The longest time that a next message, a pause or a sandbox's end waits for the changes to be kept, in milliseconds. */
const afterTurnMs = 10_000;
const beforePauseMs = 10_000;
const beforeEndMs = 60_000;

/** Keeps the changes after a turn. If that fails or takes too long, the earlier kept changes stay, and only the log says so. */
export async function keepAfterTurn(deps: ChangeDeps, conversation: Conversation, signal: AbortSignal): Promise<void> {
  await tryToKeep(deps, conversation, { withinMs: afterTurnMs, actor: 'agent', signal });
}

/** Like {@link keepAfterTurn}, for all conversations of a sandbox before a pause, because not only turns change work trees. */
export async function keepBeforePause(deps: ChangeDeps, sandboxId: string, signal: AbortSignal): Promise<void> {
  const conversations = (await findIntactUsers(deps, sandboxId)) ?? [];
  const options = { withinMs: beforePauseMs, actor: 'skep', signal } as const;
  await Promise.all(conversations.map((conversation) => tryToKeep(deps, conversation, options)));
}

async function tryToKeep(deps: ChangeDeps, conversation: Conversation, options: KeepOptions): Promise<void> {
  if (conversation.startPoint === null || options.signal.aborted) return;
  try {
    await keepChanges(deps, conversation, options);
  } catch (error) {
    deps.logger.info({ conversation: conversation.id, error }, 'the changes of a conversation were not kept');
  }
}

/**
 * Keeps the changes before the sandbox ends. Returns the reason if that fails. If the sandbox is paused, the changes that were kept at the
 * pause are enough; if it is deleted, any are. Returns null if the signal fires. Throws if the store fails.
 */
export async function keepBeforeEnd(
  deps: ChangeDeps, conversation: Conversation, signal: AbortSignal,
): Promise<ReasonOf<'changes_not_kept'> | null> {
  const { store, logger } = deps;
  const { id, ownerId, sandboxId, startPoint } = conversation;
  if (startPoint === null) return null;
  let failure: Reason | null = null;
  try {
    await keepChanges(deps, conversation, { withinMs: beforeEndMs, actor: 'skep', signal });
  } catch (error) {
    if (signal.aborted) return null;
    if (isFailureOf(error, 'store_unavailable')) throw error;
    logger.warn({ conversation: id, error }, 'the last changes of a conversation were not kept');
    failure = reasonOfError(error) ?? { code: 'internal_error' };
  }
  const kept = await store.conversations.findKeptChanges(id);
  const sandbox = await findSandbox(store, ownerId, sandboxId);
  const isEnough = kept !== null && (failure === null || sandbox === null || wereKeptAtPause(kept, sandbox));
  const cause = isEnough ? whyNotWhole(kept) : failure;
  return cause === null ? null : { code: 'changes_not_kept', cause, ...(sandbox !== null && { sandboxId }) };
}

/** Returns true if the changes were kept at the pause that lasts, or lasted when the sandbox was deleted. */
function wereKeptAtPause({ keptAt }: KeptChanges, { status, pausedBy }: Sandbox): boolean {
  return status === 'PAUSED' && pausedBy?.since !== undefined && keptAt >= pausedBy.since;
}

function whyNotWhole({ list, patch }: KeptChanges): Reason | null {
  if (list === null || patch === null) return tooLarge;
  return list.complete ? null : { code: 'files_left_out' };
}

interface KeepOptions {
  readonly withinMs: number;
  readonly actor: EventActor;
  readonly signal: AbortSignal;
}

/** Keeps the current changes. Writes an event if the files differ from the files that were kept before. */
async function keepChanges(deps: ChangeDeps, conversation: Conversation, options: KeepOptions): Promise<void> {
  const { withinMs, actor } = options;
  const { store, clock } = deps;
  // Taken before git reads, because a change during the read may be missing from the snapshot.
  const keptAt = clock.now();
  using limit = timeout(clock, withinMs);
  const signal = AbortSignal.any([options.signal, limit.signal]);
  try {
    await using snapshot = await takeSnapshot(deps, await findWorkTree(deps, conversation), signal);
    const before = await store.conversations.findKeptChanges(conversation.id);
    const { tree, head, complete } = snapshot;
    if (before !== null && before.tree === tree && before.list?.head === head && before.list.complete === complete) {
      await store.conversations.keepChanges(conversation.id, { ...before, keptAt });
      return;
    }
    const [commits, files] = await Promise.all([snapshot.commits(signal), snapshot.files(signal)]);
    const list = { head, complete, commits, files };
    const hasRoom = JSON.stringify(list).length <= maxKeptBytes;
    const patch = hasRoom ? await boundedPatch(snapshot, signal) : null;
    const isNew = before === null ? files.length > 0 : before.tree !== tree;
    const body = { kind: 'work_tree_changed', data: countChanges(files) } as const;
    const events = isNew ? [eventOf(conversation, body, { at: keptAt, actor, reason: null })] : [];
    await store.conversations.keepChanges(conversation.id, { keptAt, tree, list: hasRoom ? list : null, patch }, events);
  } catch (error) {
    throw limit.signal.aborted ? new SnapshotRefusal({ code: 'not_done_in_time', withinMs }, { cause: error }) : error;
  }
}

async function boundedPatch(snapshot: WorkTreeSnapshot, signal: AbortSignal): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of snapshot.patch(null, signal)) {
    bytes += chunk.length;
    if (bytes > maxKeptBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * Reads the work tree, or the kept changes if its sandbox does not run. After the end of an archived conversation, reads only the kept
 * changes, because other conversations may use its sandbox. A kept list is not complete if the work tree may have changed since.
 */
export async function readOrKept<T>(
  deps: ChangeDeps, conversation: Conversation, read: (workTree: ConversationWorkTree) => Promise<T>, fromKept: (kept: KeptChanges) => T,
): Promise<T> {
  const { store } = deps;
  getStartPoint(conversation);
  let failure: unknown = notKept(conversation);
  if (conversation.releasedAt === null) {
    try {
      return await read(await findWorkTree(deps, conversation));
    } catch (error) {
      if (!isFailureOf(error, 'sandbox_not_running') && !isFailureOf(error, 'sandbox_not_found')) throw error;
      if (conversation.archivedAt === null || isFailureOf(error, 'sandbox_not_running')) failure = error;
    }
  }
  const found = await store.conversations.findKeptChanges(conversation.id);
  if (found === null) throw failure;
  if (conversation.releasedAt !== null || found.list === null) return fromKept(found);
  // The record of a deleted sandbox has the status that it had.
  const sandbox = await store.sandboxes.find(conversation.sandboxId);
  const complete = found.list.complete && sandbox !== null && wereKeptAtPause(found, sandbox);
  return fromKept({ ...found, list: { ...found.list, complete } });
}

function notKept({ id, statusReason }: Conversation): Failure {
  const cause = statusReason?.code === 'changes_not_kept' ? statusReason.cause : null;
  return new Failure('conversation_changes_unavailable', { id, reason: { code: 'changes_not_kept', cause } });
}

const tooLarge = { code: 'too_large', limit: `${maxKeptBytes} bytes that are kept` } as const satisfies Reason;

function tooLargeFailure(id: string): Failure {
  return new Failure('conversation_changes_unavailable', { id, reason: tooLarge });
}

export function keptList(id: string, { list }: KeptChanges): ChangeList {
  if (list === null) throw tooLargeFailure(id);
  return list;
}

/** Returns the kept patch, or its part about one file. */
export function keptPatch(id: string, { list, patch }: KeptChanges, path: string | null): Uint8Array {
  if (list === null || patch === null) throw tooLargeFailure(id);
  return path === null ? patch : patchOfFile(patch, list.files, path);
}

/** The patch has the files in the order of the list. Only the first line of a part begins with `diff --git`. */
function patchOfFile(patch: Uint8Array, files: readonly FileChange[], path: string): Uint8Array {
  const index = files.findIndex((file) => file.path === path);
  const file = files[index];
  if (file === undefined) throw new Failure('file_not_found', { path });
  const text = Buffer.from(patch.buffer, patch.byteOffset, patch.byteLength).toString('latin1');
  const starts = [0, ...Array.from(text.matchAll(/(?<=\n)diff --git /gu), (match) => match.index), patch.length];
  const first = files.slice(0, index).reduce((sum, before) => sum + partsOf(before), 0);
  return patch.subarray(starts[first], starts[first + partsOf(file)]);
}

/** A file that became a link, or the reverse, has two parts: a deletion and a creation. */
function partsOf({ oldMode, mode }: FileChange): number {
  return oldMode !== null && mode !== null && oldMode.slice(0, 2) !== mode.slice(0, 2) ? 2 : 1;
}

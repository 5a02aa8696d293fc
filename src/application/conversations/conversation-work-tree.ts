import type { StartPoint } from '../../domain/change.ts';
import { type Conversation, foldersOfOthers, workingDirOf } from '../../domain/conversation.ts';
import { Failure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { type SnapshotRequest, SnapshotRefusal, type WorkTreeSnapshot } from '../../ports/work-tree-snapshot.ts';
import type { CoreDeps } from '../use-cases.ts';
import { redactorOf } from '../secrets.ts';
import { getSandbox, withRecordFailures } from '../sandboxes/sandbox-records.ts';

export interface ChangeDeps extends CoreDeps {
  readonly checkouts: RepositoryCheckouts;
  readonly secrets: Secrets;
}

/** The work tree of a conversation, and its start point. */
export interface ConversationWorkTree {
  readonly conversation: Conversation;
  readonly sandbox: Sandbox;
  readonly directory: string;
  readonly startPoint: StartPoint;
}

/** Returns the work tree of the conversation. Throws `conversation_changes_unavailable` if it has none. */
export async function findWorkTree(
  { store }: CoreDeps, conversation: Conversation,
): Promise<ConversationWorkTree> {
  const startPoint = getStartPoint(conversation);
  const sandbox = await getSandbox(store, conversation.ownerId, conversation.sandboxId);
  return { conversation, sandbox, directory: workingDirOf(conversation, sandbox.spec), startPoint };
}

/** Returns the start point of the conversation. Throws `conversation_changes_unavailable` if it has no work tree. */
export function getStartPoint({ id, startPoint }: Conversation): StartPoint {
  if (startPoint === null) throw new Failure('conversation_changes_unavailable', { id, reason: { code: 'no_repository' } });
  return startPoint;
}

/** Takes a snapshot, which must be disposed of. */
export function takeSnapshot(deps: ChangeDeps, workTree: ConversationWorkTree, signal: AbortSignal): Promise<WorkTreeSnapshot> {
  return inWorkTree(deps, workTree, (request) => deps.checkouts.takeSnapshot(request, signal));
}

/** Calls `work` with a function that runs commands in the work tree. Does not resume the sandbox, and does not count as activity. */
export function inWorkTree<T>(
  { runtime, secrets }: ChangeDeps, { conversation, sandbox, directory, startPoint }: ConversationWorkTree,
  work: (request: SnapshotRequest) => Promise<T>,
): Promise<T> {
  const run: SnapshotRequest['run'] = async (command, signal) => {
    const execution = await runtime.execute(sandbox.instanceId, { command, workingDir: directory }, signal);
    const { stdin, stdout, exited } = execution;
    // A failure message includes the standard error, and a git filter may print a secret there.
    const stderr = execution.stderr.pipeThrough(redactorOf(sandbox, secrets).redactStream({ isTail: false }));
    return { stdin, stdout, stderr, exited, kill: () => execution.kill() };
  };
  return withRecordFailures(sandbox, () => work({ base: startPoint.commit, foldersOfOthers: foldersOfOthers(conversation), run }));
}

/** Refusals that may be a fault of the deployment. Users can mend all others, so those are logged as info. */
const faults: ReadonlySet<Reason['code']> = new Set(['snapshot_failed', 'snapshot_damaged', 'not_done_in_time']);

export function logRefusal({ logger }: Pick<CoreDeps, 'logger'>, id: string, error: SnapshotRefusal, message: string): void {
  const { reason, cause } = error;
  if (faults.has(reason.code)) logger.warn({ conversation: id, error }, message);
  else logger.info({ conversation: id, reason, detail: cause instanceof Error ? cause.message : null }, message);
}

/** Returns a refusal as a failure, and any other error unchanged. */
export function snapshotFailure(deps: Pick<CoreDeps, 'logger'>, id: string, error: unknown): unknown {
  if (!(error instanceof SnapshotRefusal)) return error;
  logRefusal(deps, id, error, 'the snapshot of a work tree failed');
  return new Failure('conversation_changes_unavailable', { id, reason: error.reason }, { cause: error });
}

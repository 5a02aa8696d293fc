import {
  type ConversationMicroagent, maxMicroagents, maxTriggerCharacters, type MicroagentResult, partition,
} from '../../domain/applicable-microagents.ts';
import type { RepositoryLocation } from '../../domain/conversation.ts';
import { logFieldsOf } from '../../domain/failure.ts';
import type { FileContentId } from '../../ports/git-provider.ts';
import { isTooLarge, type ReadMicroagent } from '../microagents/microagents.ts';
import type { StepDeps } from './conversation-reconciler.ts';

/** Lists the repository's microagents, and reads the triggers of the first ones. Throws the failures of `GitProvider.listFiles`. */
export async function findMicroagents(deps: StepDeps, repository: RepositoryLocation, signal: AbortSignal) {
  const files = await deps.microagents.filesAt(deps.repositories.atLocation(repository), signal);
  const results = await Promise.all(files.slice(0, maxMicroagents).map((file) => readTriggers(deps, repository, file, signal)));
  signal.throwIfAborted();
  const tooMany = files.slice(maxMicroagents).map(({ path }) => ({ path, why: 'too_many' as const }));
  const { read, leftOut } = partition(results);
  return { microagents: read, leftOut: [...leftOut, ...tooMany] };
}

async function readTriggers(
  deps: StepDeps, repository: RepositoryLocation, { path, blobId }: FileContentId, signal: AbortSignal,
): Promise<MicroagentResult<ConversationMicroagent>> {
  const result = await readMicroagent(deps, repository, { path, blobId }, signal);
  if (result.kind === 'left_out') return result;
  const { triggers, frontMatterProblem } = result.value;
  if (frontMatterProblem !== null) return { kind: 'left_out', leftOut: { path, why: 'front_matter' } };
  if (triggers.join('').length > maxTriggerCharacters) return { kind: 'left_out', leftOut: { path, why: 'too_large' } };
  return { kind: 'read', value: { path, blobId, triggers, isSettled: false } };
}

/** Reads a microagent that was listed. Never rejects: without one file, the conversation continues. */
export async function readMicroagent(
  { microagents, repositories, logger }: StepDeps, repository: RepositoryLocation, { path, blobId }: FileContentId, signal: AbortSignal,
): Promise<MicroagentResult<ReadMicroagent>> {
  try {
    return { kind: 'read', value: await microagents.readFileAt(repositories.atLocation(repository), { path, blobId }, signal) };
  } catch (error) {
    if (!signal.aborted) logger.warn({ repository: repository.path, path, ...logFieldsOf(error) }, 'a microagent could not be read');
    return { kind: 'left_out', leftOut: { path, why: isTooLarge(error) ? 'too_large' : 'not_readable' } };
  }
}

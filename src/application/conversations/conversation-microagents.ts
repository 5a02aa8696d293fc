import {
  type ConversationMicroagent, maxMicroagents, maxTriggerCharacters, type OmittedMicroagent,
} from '../../domain/applicable-microagents.ts';
import type { RepositoryLocation } from '../../domain/conversation.ts';
import { logFieldsOf } from '../../domain/failure.ts';
import type { FileContentId } from '../../ports/git-provider.ts';
import { isTooLarge, type ReadMicroagent } from '../microagents/microagents.ts';
import type { StepDeps } from './conversation-reconciler.ts';

/** Lists the repository's microagents, and reads the triggers of the first ones. Throws the failures of `GitProvider.listFiles`. */
export async function findMicroagents(deps: StepDeps, repository: RepositoryLocation, signal: AbortSignal) {
  const files = await deps.microagents.filesAt(deps.repositories.atLocation(repository), signal);
  const found = await Promise.all(files.slice(0, maxMicroagents).map((file) => readTriggers(deps, repository, file, signal)));
  signal.throwIfAborted();
  const tooMany = files.slice(maxMicroagents).map(({ path }) => ({ path, why: 'too_many' as const }));
  return {
    microagents: found.flatMap((one) => ('why' in one ? [] : one)),
    omitted: [...found.flatMap((one) => ('why' in one ? one : [])), ...tooMany],
  };
}

async function readTriggers(
  deps: StepDeps, repository: RepositoryLocation, { path, blobId }: FileContentId, signal: AbortSignal,
): Promise<ConversationMicroagent | OmittedMicroagent> {
  const read = await readMicroagent(deps, repository, { path, blobId }, signal);
  if ('why' in read) return read;
  if (read.frontMatterProblem !== null) return { path, why: 'front_matter' };
  const { triggers } = read;
  return triggers.join('').length > maxTriggerCharacters ? { path, why: 'too_large' } : { path, blobId, triggers, isSettled: false };
}

/** Reads a microagent that was listed. Never rejects: without one file, the conversation continues. */
export async function readMicroagent(
  { microagents, repositories, logger }: StepDeps, repository: RepositoryLocation, { path, blobId }: FileContentId, signal: AbortSignal,
): Promise<ReadMicroagent | OmittedMicroagent> {
  try {
    return await microagents.readFileAt(repositories.atLocation(repository), { path, blobId }, signal);
  } catch (error) {
    if (!signal.aborted) logger.warn({ repository: repository.path, path, ...logFieldsOf(error) }, 'a microagent could not be read');
    return { path, why: isTooLarge(error) ? 'too_large' : 'not_readable' };
  }
}

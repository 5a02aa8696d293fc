import {
  type ConversationMicroagent, maxMicroagents, maxTriggerCharacters, type OmittedMicroagent,
} from '../../domain/conversation-microagents.ts';
import { isFailure, logFieldsOf } from '../../domain/failure.ts';
import type { FileContentId } from '../../ports/git-provider.ts';
import { isTooLarge } from '../microagents/microagents.ts';
import type { LocatedRepository } from '../repositories/repositories.ts';
import type { StepDeps } from './conversation-reconciler.ts';

export interface FoundMicroagents {
  readonly microagents: readonly ConversationMicroagent[];
  readonly omitted: readonly OmittedMicroagent[];
}

/** Lists the repository's microagents, and reads the triggers of the first ones. Throws the failures of `GitProvider.listFiles`. */
export async function findMicroagents(deps: StepDeps, located: LocatedRepository, signal: AbortSignal): Promise<FoundMicroagents> {
  const files = await deps.microagents.files(located, signal);
  const found = await Promise.all(files.slice(0, maxMicroagents).map((file) => readTriggers(deps, located, file, signal)));
  const tooMany = files.slice(maxMicroagents).map(({ path }) => ({ path, why: 'too_many' as const }));
  return {
    microagents: found.flatMap((one) => ('why' in one ? [] : one)),
    omitted: [...found.flatMap((one) => ('why' in one ? one : [])), ...tooMany],
  };
}

async function readTriggers(
  { microagents, logger }: StepDeps, located: LocatedRepository, { path, blobId }: FileContentId, signal: AbortSignal,
): Promise<ConversationMicroagent | OmittedMicroagent> {
  try {
    const { triggers, frontMatterProblem } = await microagents.readFile(located, { path, blobId }, signal);
    if (frontMatterProblem !== null) return { path, why: 'front_matter' };
    return triggers.join('').length > maxTriggerCharacters ? { path, why: 'too_large' } : { path, blobId, triggers, isSettled: false };
  } catch (error) {
    if (signal.aborted || !isFailure(error)) throw error;
    logger.warn({ repository: located.path, path, ...logFieldsOf(error) }, 'a microagent could not be read');
    return { path, why: isTooLarge(error) ? 'too_large' : 'not_readable' };
  }
}

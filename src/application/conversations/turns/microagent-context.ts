import {
  applicableMicroagents, type ConversationMicroagent, fitIntoContext, type LeftOutMicroagent, microagentsEventData,
  type MicroagentResult, type MicroagentText, partition,
} from '../../../domain/applicable-microagents.ts';
import { type Conversation, type Message, textOf } from '../../../domain/conversation.ts';
import type { EventBody } from '../../../domain/event.ts';
import { timeout } from '../../timers.ts';
import { readMicroagent } from '../conversation-microagents.ts';
import type { StepDeps } from '../conversation-reconciler.ts';

/** How long a message waits for the git host. Files that were read for an earlier message are in memory. */
const readWithinMs = 10_000;

/** The text that the agent gets before a message, and the data that the turn writes about it. */
export interface MicroagentContext {
  readonly text: string;
  readonly microagents: readonly ConversationMicroagent[];
  readonly event: EventBody;
}

/** Returns the microagents that the message triggers or that always apply, each once per agent session. Null if there are none. */
export async function microagentContext(
  deps: StepDeps, conversation: Conversation, message: Message, signal: AbortSignal,
): Promise<MicroagentContext | null> {
  const { microagents, gitProvider: provider, repositoryPath: path } = conversation;
  const applicable = applicableMicroagents(microagents ?? [], textOf(message));
  if (microagents === null || provider === null || path === null || applicable.length === 0) return null;
  using limit = timeout(deps.clock, readWithinMs);
  const within = AbortSignal.any([signal, limit.signal]);
  const results = await Promise.all(applicable.map(async (each): Promise<MicroagentResult<MicroagentText>> => {
    const result = await readMicroagent(deps, { provider, path }, each.microagent, within);
    return result.kind === 'read' ? { kind: 'read', value: { ...each, content: result.value.content } } : result;
  }));
  if (signal.aborted) return null;
  const { read, leftOut: unreadable } = partition(results);
  const { given, tooLarge } = fitIntoContext(read);
  const leftOut = [...unreadable, ...tooLarge];
  const settled = new Set(applicable.map(({ microagent }) => microagent));
  return {
    text: contextText(given, leftOut),
    microagents: microagents.map((microagent) => (settled.has(microagent) ? { ...microagent, isSettled: true } : microagent)),
    event: { kind: 'microagents', data: microagentsEventData(given, leftOut) },
  };
}

/** Returns the text that the agent gets before the message of its user. */
export function contextText(given: readonly MicroagentText[], leftOut: readonly LeftOutMicroagent[]): string {
  const parts = given.map(({ microagent: { path }, trigger, content }) => {
    const body = `\n\n${content.trim()}\n`;
    if (trigger === null) {
      return `<REPOSITORY_INSTRUCTIONS>\nThe file ${path} of the repository, which always applies.${body}</REPOSITORY_INSTRUCTIONS>`;
    }
    const why = `The message mentions ${JSON.stringify(trigger)}, so the file ${path} of the repository may be relevant.`;
    return `<EXTRA_INFO>\n${why}${body}</EXTRA_INFO>`;
  });
  if (leftOut.length > 0) {
    const list = leftOut.map(({ path }) => `- ${path}`).join('\n');
    parts.push(`<EXTRA_INFO>\nThese files of the repository apply too. Read them before you begin.\n${list}\n</EXTRA_INFO>`);
  }
  return parts.join('\n');
}

import { modelScript, textOf, type ModelDouble, type ModelReply } from '../../doubles/model/index.ts';
import type { ConversationClient } from '../../support/conversation.ts';
import { sandboxesWithProcesses } from '../../support/processes.ts';

/** A model that reads a file and then changes a word in it. */
export function edits(filePath: string, oldString: string, newString: string): ModelReply[] {
  return [{ tool: 'read', arguments: { filePath } }, { tool: 'edit', arguments: { filePath, oldString, newString } }];
}

/** A model that writes a file. */
export function writes(filePath: string, content: string): ModelReply[] {
  return [{ tool: 'write', arguments: { filePath, content } }];
}

/** Sends a message over which the model stalls, and answers with its id when the agent is in the midst of its answer. */
export async function stall(talk: ConversationClient): Promise<string> {
  const message = await talk.say(modelScript({ text: 'let me see', stall: true }));
  const { id } = await talk.event('turn_started', ({ data }) => data['message_id'] === message);
  await talk.event('message_chunk', () => true, id);
  return message;
}

/** What the model was told, request by request: all that the user said, and all that it had answered before. */
export function handedOver({ requests }: ModelDouble) {
  const told = requests.filter(({ body }) => (body.tools ?? []).length > 0);
  return told.map(({ authorization, body: { messages } }) => {
    const by = (wanted: string): string[] => messages.filter(({ role }) => role === wanted).map(textOf);
    return { authorization, text: by('user').join('\n'), remembered: by('assistant') };
  });
}

/** Is no process left of the sandbox, whose path ends in its id? */
export function isOver(dataDir: string, sandbox: string): boolean {
  return !sandboxesWithProcesses(dataDir).has(sandbox.slice(sandbox.lastIndexOf('/') + 1));
}

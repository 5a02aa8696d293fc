import { modelScript, textOf, type ModelDouble, type ModelReply } from '../../doubles/model/index.ts';
import type { ConversationClient } from '../../support/conversation.ts';
import { sandboxesWithProcesses } from '../../support/processes.ts';

/** Returns the replies of a model that reads a file and then replaces a text in it. */
export function edits(filePath: string, oldString: string, newString: string): ModelReply[] {
  return [{ tool: 'read', arguments: { filePath } }, { tool: 'edit', arguments: { filePath, oldString, newString } }];
}

/** Returns the replies of a model that writes a file. */
export function writes(filePath: string, content: string): ModelReply[] {
  return [{ tool: 'write', arguments: { filePath, content } }];
}

/** Sends a message whose turn stalls. Returns its id when the agent has begun to answer. */
export async function stall(talk: ConversationClient): Promise<string> {
  const message = await talk.say(modelScript({ text: 'let me see', stall: true }));
  const { id } = await talk.event('turn_started', ({ data }) => data['message_id'] === message);
  await talk.event('message_chunk', () => true, id);
  return message;
}

/** Returns what the model received in each request: the user's messages, and its own earlier answers. */
export function handedOver({ requests }: ModelDouble) {
  const told = requests.filter(({ body }) => (body.tools ?? []).length > 0);
  return told.map(({ authorization, body: { messages } }) => {
    const by = (wanted: string): string[] => messages.filter(({ role }) => role === wanted).map(textOf);
    return { authorization, text: by('user').join('\n'), remembered: by('assistant') };
  });
}

/** Returns whether the sandbox has no process left. `sandbox` is its path in the API. */
export function isOver(dataDir: string, sandbox: string): boolean {
  return !sandboxesWithProcesses(dataDir).has(sandbox.slice(sandbox.lastIndexOf('/') + 1));
}

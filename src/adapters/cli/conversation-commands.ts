import { Readable } from 'node:stream';
import { ClientError, conversation, pageOf } from '../../client/client.ts';
import { followEvents } from '../../client/events.ts';
import { Chat } from './chat.ts';
import { stopSignal, clientOf, notice, table } from './console.ts';
import { Transcript } from './transcript.ts';

const path = '/api/v1/app-conversations';
const pathOf = (id: string): string => `${path}/${encodeURIComponent(id)}`;

export interface ChatOptions {
  readonly url?: string;
  /** Continue this one. */
  readonly conversation?: string;
  readonly branch?: string;
  readonly spec?: string;
  readonly title?: string;
  readonly permissions?: string;
  /** The first message. */
  readonly message?: string;
  /** Read no input: leave when the message is answered. */
  readonly once?: boolean;
}

/** Starts a conversation on the repository, or continues one, and talks with its agent. */
export async function chat(repository: string | undefined, options: ChatOptions): Promise<number> {
  const client = clientOf(options.url);
  if (options.conversation !== undefined && repository !== undefined) {
    throw new ClientError('A conversation keeps its repository: leave out the repository, or --conversation.');
  }
  const { id, sandbox_id } = options.conversation === undefined
    ? await client.post(path, newConversation(repository, options), conversation)
    : await client.get(pathOf(options.conversation), conversation);
  notice(`conversation ${id}, sandbox ${sandbox_id ?? '-'}`);
  const { stdin, stdout } = process;
  const once = options.once === true;
  const talk = new Chat(client, id, {
    input: once ? Readable.from([]) : stdin,
    output: stdout,
    interactive: !once && stdin.isTTY && stdout.isTTY,
    colored: stdout.isTTY && stdout.hasColors(),
  });
  return await talk.run(options.message ?? null);
}

/** Returns the body of the request. JSON leaves out what is undefined. */
function newConversation(repository: string | undefined, { branch, spec, title, permissions }: ChatOptions): object {
  return { selected_repository: repository, selected_branch: branch, sandbox_spec_id: spec, title, permission_policy: permissions };
}

/** Lists the newest conversations. */
export async function listConversations(url: string | undefined): Promise<number> {
  const { items, next_page_id } = await clientOf(url).get(path, pageOf(conversation));
  const rows = items.map((item) => [
    item.id,
    item.start_status === 'READY' ? (item.execution_status ?? 'no agent') : item.start_status,
    item.sandbox_status,
    item.selected_repository ?? '-',
    item.title ?? '-',
  ]);
  process.stdout.write(table(['ID', 'STATE', 'SANDBOX', 'REPOSITORY', 'TITLE'], rows));
  if (next_page_id !== null) notice('There are older ones.');
  return 0;
}

/** Prints the events of a conversation from the beginning, until it or the process ends. */
export async function followConversation(url: string | undefined, id: string): Promise<number> {
  const { stdout } = process;
  const transcript = new Transcript({ write: (text) => stdout.write(text), colored: stdout.isTTY && stdout.hasColors() });
  const events = followEvents(clientOf(url), `${pathOf(id)}/events/stream`, { signal: stopSignal(), onLost: notice });
  for await (const event of events) transcript.show(event);
  return 0;
}

/** Ends a conversation. Its sandbox is deleted too if no other conversation uses it. */
export async function endConversation(url: string | undefined, id: string): Promise<number> {
  await clientOf(url).delete(pathOf(id));
  notice(`The conversation ${id} is ended.`);
  return 0;
}

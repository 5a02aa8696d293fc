import { Readable } from 'node:stream';
import { type Api, ClientError } from '../../client/client.ts';
import { conversation, type Conversation, followEvents, pageOf } from '../../client/events.ts';
import { Chat } from './chat.ts';
import { type Environment, notice, serverOf, signalled, table } from './console.ts';
import { Transcript } from './transcript.ts';

export interface ChatOptions {
  readonly url?: string;
  /** Go on with this one. */
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

/** Starts a conversation on the repository, or goes on with one, and talks with its agent. */
export async function chat(env: Environment, repository: string | undefined, options: ChatOptions): Promise<number> {
  const api = serverOf(env, options.url);
  const { id, sandbox_id } = options.conversation === undefined ? await started(api, repository, options) : await joined(api, options.conversation, repository);
  notice(`conversation ${id}, sandbox ${sandbox_id ?? '-'}`);
  const { stdin, stdout } = process;
  const once = options.once === true;
  const talk = new Chat(api, id, {
    input: once ? Readable.from([]) : stdin,
    output: stdout,
    interactive: !once && stdin.isTTY && stdout.isTTY,
    colored: stdout.isTTY && stdout.hasColors(),
  });
  return await talk.run(options.message ?? null);
}

async function started(api: Api, repository: string | undefined, { branch, spec, title, permissions }: ChatOptions): Promise<Conversation> {
  const body = {
    ...(repository !== undefined && { selected_repository: repository }),
    ...(branch !== undefined && { selected_branch: branch }),
    ...(spec !== undefined && { sandbox_spec_id: spec }),
    ...(title !== undefined && { title }),
    ...(permissions !== undefined && { permission_policy: permissions }),
  };
  return await api.post('/api/v1/app-conversations', body, conversation);
}

async function joined(api: Api, id: string, repository: string | undefined): Promise<Conversation> {
  if (repository !== undefined) throw new ClientError('A conversation keeps its repository: leave the repository out, or --conversation.');
  return await api.get(`/api/v1/app-conversations/${encodeURIComponent(id)}`, conversation);
}

const path = '/api/v1/app-conversations';

/** Lists the newest conversations. */
export async function listConversations(env: Environment, url: string | undefined): Promise<number> {
  const { items, next_page_id } = await serverOf(env, url).get(path, pageOf(conversation));
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

/** Shows the events of a conversation, from the beginning, until it is ended or this is interrupted. */
export async function followConversation(env: Environment, url: string | undefined, id: string): Promise<number> {
  const api = serverOf(env, url);
  const { stdout } = process;
  const transcript = new Transcript({ write: (text) => stdout.write(text), colored: stdout.isTTY && stdout.hasColors() });
  for await (const event of followEvents(api, `${path}/${encodeURIComponent(id)}/events/stream`, { signal: signalled(), onLost: notice })) transcript.show(event);
  return 0;
}

/** Ends a conversation; its sandbox goes too if no other one uses it. */
export async function endConversation(env: Environment, url: string | undefined, id: string): Promise<number> {
  await serverOf(env, url).delete(`${path}/${encodeURIComponent(id)}`);
  notice(`The conversation ${id} is ended.`);
  return 0;
}

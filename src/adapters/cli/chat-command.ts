import { Readable } from 'node:stream';
import type { Api } from '../../client/api.ts';
import { Chat } from './chat.ts';
import { ClientError } from '../../client/client-error.ts';
import { notice } from './notice.ts';
import { conversation, type Conversation } from '../../client/schema.ts';
import { serverOf } from './server-of.ts';
import type { Environment } from './environment.ts';

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

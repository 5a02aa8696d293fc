import { Readable } from 'node:stream';
import { ClientError, conversation, pageOf, safeLine, sandbox, type Sandbox } from '../../client/client.ts';
import { followEvents } from '../../client/events.ts';
import { Chat } from './chat.ts';
import { clientOf, notice, stopSignal, table } from './console.ts';
import { Transcript } from './transcript.ts';

const conversations = '/api/v1/app-conversations';
const conversationPath = (id: string): string => `${conversations}/${encodeURIComponent(id)}`;
const sandboxes = '/api/v1/sandboxes';
const sandboxPath = (id: string): string => `${sandboxes}/${encodeURIComponent(id)}`;

/** The server to talk to. Default: the one of this machine's settings. */
export interface Where { readonly url?: string }

/** The options of `skep chat`. */
export interface ChatOptions extends Where {
  readonly conversation?: string;
  readonly branch?: string;
  readonly spec?: string;
  readonly title?: string;
  readonly permissions?: string;
  readonly message?: string;
  readonly once?: boolean;
}

/** Starts a conversation on the repository, or continues one, and talks with its agent. */
export async function chat(repository: string | undefined, options: ChatOptions): Promise<number> {
  const client = clientOf(options.url);
  if (options.conversation !== undefined && repository !== undefined) {
    throw new ClientError('A conversation keeps its repository: leave out the repository, or --conversation.');
  }
  const { branch, spec, title, permissions, once = false, message = null } = options;
  // JSON leaves out what is undefined.
  const body = { selected_repository: repository, selected_branch: branch, sandbox_spec_id: spec, title, permission_policy: permissions };
  const { id, sandbox_id } = options.conversation === undefined
    ? await client.post(conversations, body, conversation)
    : await client.get(conversationPath(options.conversation), conversation);
  notice(`conversation ${id}, sandbox ${sandbox_id ?? '-'}`);
  const { stdin, stdout } = process;
  return await new Chat(client, id, {
    input: once ? Readable.from([]) : stdin,
    output: stdout,
    interactive: !once && stdin.isTTY && stdout.isTTY,
    colored: stdout.isTTY && stdout.hasColors(),
  }).run(message);
}

/** Lists the newest conversations. */
export async function listConversations({ url }: Where): Promise<number> {
  const { items, next_page_id } = await clientOf(url).get(conversations, pageOf(conversation));
  const rows = items.map(({ id, start_status, execution_status, sandbox_status, selected_repository, title }) => {
    const state = start_status === 'READY' ? (execution_status ?? 'no agent') : start_status;
    return [id, state, sandbox_status, selected_repository ?? '-', title ?? '-'];
  });
  return printPage(['ID', 'STATE', 'SANDBOX', 'REPOSITORY', 'TITLE'], rows, next_page_id);
}

/** Prints the events of a conversation from the beginning, until it or the process ends. */
export async function followConversation(id: string, { url }: Where): Promise<number> {
  const { stdout } = process;
  const transcript = new Transcript({ write: (text) => stdout.write(text), colored: stdout.isTTY && stdout.hasColors() });
  const events = followEvents(clientOf(url), `${conversationPath(id)}/events/stream`, { signal: stopSignal(), onLost: notice });
  for await (const event of events) transcript.show(event);
  return 0;
}

export async function endConversation(id: string, { url }: Where): Promise<number> {
  await clientOf(url).delete(conversationPath(id));
  notice(`The conversation ${id} is ended.`);
  return 0;
}

const sandboxHead = ['ID', 'STATUS', 'SPEC', 'ACTIVE', 'DETAIL'];

function sandboxRow({ id, status, pause_kind, sandbox_spec_id, last_active_at, status_detail }: Sandbox): string[] {
  return [id, pause_kind === null ? status : `${status} (${pause_kind})`, sandbox_spec_id, last_active_at, status_detail ?? ''];
}

/** Lists the newest sandboxes. */
export async function listSandboxes({ url }: Where): Promise<number> {
  const { items, next_page_id } = await clientOf(url).get(`${sandboxes}/search`, pageOf(sandbox));
  return printPage(sandboxHead, items.map(sandboxRow), next_page_id);
}

/** Prints the status changes of all sandboxes as they happen, until the process ends. */
export async function followSandboxes({ url }: Where): Promise<number> {
  const options = { signal: stopSignal(), onLost: notice };
  const path = '/api/v1/events/stream?kinds=sandbox_moved';
  for await (const { kind, at, sandbox_id, reason, data } of followEvents(clientOf(url), path, options)) {
    if (kind !== 'sandbox_moved') continue;
    const tier = data.pause_kind === null ? '' : ` (${data.pause_kind})`;
    const line = `${at} ${sandbox_id ?? '-'} ${data.from ?? 'new'} -> ${data.to ?? 'gone'}${tier} ${reason ?? ''}`;
    process.stdout.write(`${safeLine(line)}\n`);
  }
  return 0;
}

export interface PauseOptions extends Where { readonly kind?: string }

/** Pauses or resumes a sandbox, and prints its state afterwards. */
export async function moveSandbox(move: 'pause' | 'resume', id: string, { url, kind }: PauseOptions): Promise<number> {
  const body = kind === undefined ? undefined : { pause_kind: kind };
  return printPage(sandboxHead, [sandboxRow(await clientOf(url).post(`${sandboxPath(id)}/${move}`, body, sandbox))], null);
}

export async function deleteSandbox(id: string, { url }: Where): Promise<number> {
  await clientOf(url).delete(sandboxPath(id));
  notice(`The sandbox ${id} is deleted, with its files.`);
  return 0;
}

function printPage(head: readonly string[], rows: readonly (readonly string[])[], nextPageId: string | null): number {
  process.stdout.write(table(head, rows));
  if (nextPageId !== null) notice('There are older ones.');
  return 0;
}

import { followEvents } from '../../client/follow.ts';
import { notice } from './notice.ts';
import { conversation, pageOf } from '../../client/schema.ts';
import { serverOf } from './server-of.ts';
import { table } from './table.ts';
import { Transcript } from './transcript.ts';
import { signalled } from './until-signal.ts';
import type { Environment } from './environment.ts';

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

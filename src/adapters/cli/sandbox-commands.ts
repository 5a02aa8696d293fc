import { harmlessLine } from '../../client/client.ts';
import { followEvents, pageOf, sandbox, type Sandbox } from '../../client/events.ts';
import { type Environment, notice, serverOf, signalled, table } from './console.ts';

const path = '/api/v1/sandboxes';
const head = ['ID', 'STATUS', 'SPEC', 'ACTIVE', 'DETAIL'];

/** Lists the newest sandboxes. */
export async function listSandboxes(env: Environment, url: string | undefined): Promise<number> {
  const { items, next_page_id } = await serverOf(env, url).get(`${path}/search`, pageOf(sandbox));
  process.stdout.write(table(head, items.map(row)));
  if (next_page_id !== null) notice('There are older ones.');
  return 0;
}

/** Shows the changes of all sandboxes as they come, until it is interrupted. */
export async function followSandboxes(env: Environment, url: string | undefined): Promise<number> {
  const events = followEvents(serverOf(env, url), '/api/v1/events/stream?kinds=sandbox_moved', { signal: signalled(), onLost: notice });
  for await (const { kind, at, sandbox_id, reason, data } of events) {
    if (kind !== 'sandbox_moved') continue;
    const tier = data.pause_kind === null ? '' : ` (${data.pause_kind})`;
    const line = `${at} ${sandbox_id ?? '-'} ${data.from ?? 'new'} -> ${data.to ?? 'gone'}${tier} ${reason ?? ''}`;
    process.stdout.write(`${harmlessLine(line)}\n`);
  }
  return 0;
}

/** Pauses or resumes a sandbox, and tells what has become of it. */
export async function moveSandbox(env: Environment, url: string | undefined, id: string, move: 'pause' | 'resume', pauseKind?: string): Promise<number> {
  const body = pauseKind === undefined ? undefined : { pause_kind: pauseKind };
  const moved = await serverOf(env, url).post(`${path}/${encodeURIComponent(id)}/${move}`, body, sandbox);
  process.stdout.write(table(head, [row(moved)]));
  return 0;
}

export async function deleteSandbox(env: Environment, url: string | undefined, id: string): Promise<number> {
  await serverOf(env, url).delete(`${path}/${encodeURIComponent(id)}`);
  notice(`The sandbox ${id} is gone, with its files.`);
  return 0;
}

function row({ id, status, pause_kind, sandbox_spec_id, last_active_at, status_detail }: Sandbox): string[] {
  return [id, pause_kind === null ? status : `${status} (${pause_kind})`, sandbox_spec_id, last_active_at, status_detail ?? ''];
}

import { pageOf, safeLine, sandbox, type Sandbox } from '../../client/client.ts';
import { followEvents } from '../../client/events.ts';
import { stopSignal, clientOf, notice, table } from './console.ts';

const path = '/api/v1/sandboxes';
const pathOf = (id: string): string => `${path}/${encodeURIComponent(id)}`;
const head = ['ID', 'STATUS', 'SPEC', 'ACTIVE', 'DETAIL'];

/** Lists the newest sandboxes. */
export async function listSandboxes(url: string | undefined): Promise<number> {
  const { items, next_page_id } = await clientOf(url).get(`${path}/search`, pageOf(sandbox));
  process.stdout.write(table(head, items.map(row)));
  if (next_page_id !== null) notice('There are older ones.');
  return 0;
}

/** Prints the status changes of all sandboxes as they happen, until the process ends. */
export async function followSandboxes(url: string | undefined): Promise<number> {
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

/** Pauses or resumes a sandbox, and prints its state afterwards. */
export async function moveSandbox(url: string | undefined, id: string, move: 'pause' | 'resume', kind?: string): Promise<number> {
  const body = kind === undefined ? undefined : { pause_kind: kind };
  process.stdout.write(table(head, [row(await clientOf(url).post(`${pathOf(id)}/${move}`, body, sandbox))]));
  return 0;
}

export async function deleteSandbox(url: string | undefined, id: string): Promise<number> {
  await clientOf(url).delete(pathOf(id));
  notice(`The sandbox ${id} is deleted, with its files.`);
  return 0;
}

function row({ id, status, pause_kind, sandbox_spec_id, last_active_at, status_detail }: Sandbox): string[] {
  return [id, pause_kind === null ? status : `${status} (${pause_kind})`, sandbox_spec_id, last_active_at, status_detail ?? ''];
}

import { createClient, items, object, type Answer } from '../support/client.ts';

/** What the load knows about one sandbox or conversation. */
export interface Known {
  /** A deletion was requested. */
  deleting: boolean;
  /** A deletion was acknowledged. */
  deleted: boolean;
}

export interface Knowledge {
  readonly sandboxes: Map<string, Known>;
  readonly conversations: Map<string, Known>;
}

/**
 * Runs clients that create, pause, resume and delete at random until the server is killed. They record what the server has
 * acknowledged. Each client sends a limited number of requests.
 */
export async function load(url: string, key: string, knowledge: Knowledge, clients: number, random: () => number): Promise<void> {
  await Promise.all(Array.from({ length: clients }, () => oneClient(url, key, knowledge, random)));
}

async function oneClient(url: string, key: string, knowledge: Knowledge, random: () => number): Promise<void> {
  const call = createClient(url, key);
  const pick = (map: Map<string, Known>): string | undefined => {
    const ids = [...map].filter(([, { deleting }]) => !deleting).map(([id]) => id);
    return ids[Math.floor(random() * ids.length)];
  };
  try {
    for (let requests = 0; requests < 500; requests += 1) {
      const dice = random();
      if (dice < 0.3) note(knowledge.sandboxes, await call('POST', '/api/v1/sandboxes'));
      else if (dice < 0.45) note(knowledge.conversations, await call('POST', '/api/v1/app-conversations', { title: 'load' }));
      else if (dice < 0.6) await act(pick(knowledge.sandboxes), (id) => call('POST', `/api/v1/sandboxes/${id}/pause`, { pause_kind: random() < 0.5 ? 'freeze' : 'stop' }));
      else if (dice < 0.75) await act(pick(knowledge.sandboxes), (id) => call('POST', `/api/v1/sandboxes/${id}/resume`));
      else if (dice < 0.9) await remove(knowledge.sandboxes, pick(knowledge.sandboxes), (id) => call('DELETE', `/api/v1/sandboxes/${id}`));
      else await remove(knowledge.conversations, pick(knowledge.conversations), (id) => call('DELETE', `/api/v1/app-conversations/${id}`));
    }
  } catch (error) {
    // The load expects the kill of the server. A wrong response fails.
    if (!(error instanceof TypeError) && !(error instanceof SyntaxError)) throw error;
  }
}

function note(known: Map<string, Known>, answer: Answer): void {
  if (answer.status === 429) return;
  if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  known.set(String(object(answer)['id']), { deleting: false, deleted: false });
}

async function act(id: string | undefined, call: (id: string) => Promise<Answer>): Promise<void> {
  if (id === undefined) return;
  const { status, body } = await call(id);
  if (![200, 404, 409, 429].includes(status)) throw new Error(`acting on ${id} answered ${status}: ${JSON.stringify(body)}`);
}

async function remove(known: Map<string, Known>, id: string | undefined, call: (id: string) => Promise<Answer>): Promise<void> {
  const entry = id === undefined ? undefined : known.get(id);
  if (id === undefined || entry === undefined) return;
  entry.deleting = true;
  const { status, body } = await call(id);
  if (status !== 204) throw new Error(`deleting ${id} answered ${status}: ${JSON.stringify(body)}`);
  entry.deleted = true;
}

/** Returns all items of a listing, page by page. */
export async function all(url: string, key: string, path: string): Promise<Record<string, unknown>[]> {
  const call = createClient(url, key);
  const found: Record<string, unknown>[] = [];
  for (let pageId: string | null = ''; pageId !== null; ) {
    const answer: Answer = await call('GET', `${path}?limit=50${pageId === '' ? '' : `&page_id=${pageId}`}`);
    found.push(...items(answer));
    pageId = object(answer)['next_page_id'] as string | null;
  }
  return found;
}

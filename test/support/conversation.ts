import type { EventKind } from '../../src/domain/event.ts';
import { items, object, type Client, type Json } from './client.ts';
import { until } from './until.ts';

/** An event in a response. */
export interface ApiEvent {
  readonly id: number;
  readonly kind: EventKind;
  readonly actor: string;
  readonly reason: string | null;
  readonly data: Json;
}

/** The events of a turn, including its first and its last event. */
export interface TurnEvents {
  readonly events: readonly ApiEvent[];
  readonly stopReason: unknown;
}

/** A conversation over HTTP. Every wait has a time limit. */
export interface ConversationClient {
  readonly id: string;
  readonly path: string;
  now(): Promise<Json>;
  /** Waits until the conversation is READY. Throws with the reason if the start fails. */
  ready(): Promise<Json>;
  /** Returns all events until now. */
  events(): Promise<readonly ApiEvent[]>;
  /** Waits for an event of the kind for which `wanted` returns true, with an id greater than `after`. */
  event(kind: EventKind, wanted?: (told: ApiEvent) => boolean, after?: number): Promise<ApiEvent>;
  /** Sends a message. Returns its id. */
  say(text: string): Promise<string>;
  /** Waits until the turn of the message has ended. Default: the first message. */
  turn(messageId?: string): Promise<TurnEvents>;
  untilStatus(executionStatus: string | null): Promise<Json>;
  post(path: string, body?: unknown): Promise<Json>;
  sandboxId(): Promise<string>;
}

const patience = 90_000;

/** Returns the request body of a message. */
export function messageOf(text: string): Json {
  return { content: [{ type: 'text', text }] };
}

/** Creates a conversation. Calls `call` for each request, so that a test can change the server in between. */
export async function startConversation(call: () => Client, request: Json): Promise<ConversationClient> {
  const created = await call()('POST', '/api/v1/app-conversations', request);
  if (created.status !== 201) throw new Error(`the conversation was refused: ${created.status} ${JSON.stringify(created.body)}`);
  const id = String(object(created)['id']);
  const path = `/api/v1/app-conversations/${id}`;
  const now = async (): Promise<Json> => object(await call()('GET', path));
  const log: ApiEvent[] = [];

  async function events(): Promise<readonly ApiEvent[]> {
    for (;;) {
      const page = items(await call()('GET', `${path}/events?after=${log.at(-1)?.id ?? 0}`)) as unknown as ApiEvent[];
      // A concurrent call may have added the same events.
      log.push(...page.filter((told) => told.id > (log.at(-1)?.id ?? 0)));
      if (page.length < 100) return [...log];
    }
  }

  async function event(kind: EventKind, wanted: (told: ApiEvent) => boolean = () => true, after = 0): Promise<ApiEvent> {
    const find = (all: readonly ApiEvent[]): ApiEvent | undefined => all.find((told) => told.kind === kind && told.id > after && wanted(told));
    const found = find(await until(events, (all) => find(all) !== undefined, patience));
    if (found === undefined) throw new Error(`no ${kind}`);
    return found;
  }

  async function post(below: string, body?: unknown): Promise<Json> {
    const answer = await call()('POST', `${path}${below}`, body);
    if (answer.status >= 300) throw new Error(`${below} was refused: ${answer.status} ${JSON.stringify(answer.body)}`);
    return object(answer);
  }

  return {
    id,
    path,
    now,
    events,
    event,
    post,
    async ready() {
      const found = await until(now, ({ start_status: status }) => status === 'READY' || status === 'ERROR', patience);
      if (found['start_status'] === 'ERROR') throw new Error(`the start failed: ${String(found['status_detail'])}`);
      return found;
    },
    async say(text) {
      return String((await post('/messages', messageOf(text)))['message_id']);
    },
    async turn(messageId) {
      const named = messageId ?? String((await event('message', ({ data }) => data['role'] === 'user')).data['message_id']);
      const isOf = ({ data }: ApiEvent): boolean => data['message_id'] === named;
      const end = await event('turn_ended', isOf);
      const begin = await event('turn_started', isOf);
      return { events: (await events()).filter(({ id }) => id >= begin.id && id <= end.id), stopReason: end.data['stop_reason'] };
    },
    untilStatus: (status) => until(now, (found) => found['execution_status'] === status, patience),
    sandboxId: async () => String((await now())['sandbox_id']),
  };
}

/** Returns the texts of the agent's answer messages. */
export function answersIn({ events }: TurnEvents): unknown[] {
  return events.flatMap(({ kind, data }) => (kind === 'message' && data['role'] === 'agent' && data['channel'] === 'answer' ? [data['text']] : []));
}

/** Returns the last state of each tool call of a turn. */
export function toolCallsIn({ events }: TurnEvents): Json[] {
  return [...new Map(events.flatMap(({ kind, data }) => (kind === 'tool_call' ? [[data['tool_call_id'], data] as const] : []))).values()];
}

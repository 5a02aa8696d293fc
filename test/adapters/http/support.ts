import type { EventDraft } from '../../../src/domain/event.ts';
import type { MemoryAgentScript } from '../../doubles/memory/index.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import type { World } from './world.ts';

export const conversations = '/api/v1/app-conversations';

/** Starts a conversation for Ann, and returns its id when it is READY. */
export async function readyConversation(world: World, body: unknown = {}): Promise<string> {
  const id = String(object(await world.ann('POST', conversations, body))['id']);
  await until(() => world.ann('GET', `${conversations}/${id}`), (answer) => object(answer)['start_status'] === 'READY', 60_000);
  return id;
}

/** The turn of an agent that says `stalling.`, and works until it is cancelled. */
export async function stall(turn: Parameters<MemoryAgentScript>[0]): Promise<'cancelled'> {
  const { promise, resolve } = Promise.withResolvers<void>();
  turn.signal.addEventListener('abort', () => resolve(), { once: true });
  await turn.say('stalling.');
  await promise;
  return 'cancelled';
}

/** Waits for a line of the request log. */
export async function logged(world: World, wanted: Readonly<Record<string, unknown>>): Promise<void> {
  const fits = (line: Readonly<Record<string, unknown>>): boolean => Object.entries(wanted).every(([name, value]) => line[name] === value);
  await until(() => world.lines.some(fits), Boolean, 60_000);
}

/** A part of a message of an agent. */
export function chunk(conversationId: string, text: string): EventDraft {
  return {
    kind: 'message_chunk', at: Date.now(), ownerId: 'ann', conversationId, sandboxId: null, actor: 'agent', userId: null, reason: null,
    data: { messageId: 'msg-1', channel: 'answer', text },
  };
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { conversations, readyConversation } from './support.ts';
import { coderSpec, createWorld, plainSpec, type World } from './world.ts';

let world: World;
let admin: World['ann'];
beforeAll(async () => {
  world = await createWorld({
    specs: [coderSpec, plainSpec],
    script: async (turn) => {
      const text = turn.message.content.at(-1)?.text ?? '';
      const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' as const }];
      if (text === 'ask') await turn.ask({ toolCallId: 'call', title: 'rm', options });
      if (text !== 'stall') return 'end_turn';
      await new Promise<void>((resolve) => turn.signal.addEventListener('abort', () => resolve(), { once: true }));
      return 'cancelled';
    },
  });
  admin = world.client(world.keys.admin);
});
afterAll(() => world.close());

const sandboxes = '/api/v1/sandboxes';

async function startSandbox(): Promise<string> {
  const id = String(object(await world.ann('POST', sandboxes, { sandbox_spec_id: 'plain' }))['id']);
  await until(() => world.ann('GET', `${sandboxes}/${id}`), (answer) => object(answer)['status'] === 'RUNNING', 60_000);
  return id;
}

/** Returns who changed the status of the sandbox, by whose request and why, without the changes that Skep itself made. */
async function requestsOf(id: string): Promise<unknown[]> {
  const events = items(await world.ann('GET', `/api/v1/events?kinds=sandbox_moved&sandbox_id__eq=${id}`)) as Record<string, unknown>[];
  expect(new Set(events.map((event) => event['owner_id']))).toEqual(new Set(['ann']));
  expect(events.filter((event) => event['actor'] !== 'user').every((event) => event['user_id'] === null)).toBe(true);
  const requested = events.filter((event) => event['actor'] === 'user');
  return requested.map((event) => [event['user_id'], (event['status_reason'] as { code: string } | null)?.code ?? null]);
}

describe('a change of a sandbox', () => {
  test('that an administrator requests has a reason of its own, and the user in the event and the log', async () => {
    const id = await startSandbox();
    const frozen = object(await admin('POST', `${sandboxes}/${id}/pause`, { pause_kind: 'freeze' }));
    expect(frozen).toMatchObject({ paused_by: 'user', paused_reason: { code: 'paused_by_administrator' }, status_detail: 'Paused by an administrator.' });
    await admin('POST', `${sandboxes}/${id}/pause`, { pause_kind: 'stop' });
    await admin('POST', `${sandboxes}/${id}/resume`);
    await admin('DELETE', `${sandboxes}/${id}`);
    expect(await requestsOf(id)).toEqual([
      ['ann', null], ['root', 'paused_by_administrator'], ['root', 'paused_by_administrator'], ['root', 'resumed_by_administrator'],
      ['root', 'deleted_by_administrator'],
    ]);
    const deleted = world.lines.find((line) => line['sandbox'] === id && line['to'] === 'deleted');
    expect(deleted).toMatchObject({ actor: 'user', user: 'root', reason: { code: 'deleted_by_administrator' } });
  });

  test('that its owner requests has the owner, also with the key of an administrator', async () => {
    const owner = world.client(world.auth.issue({ userId: 'ann', keyName: 'ann-admin', access: 'admin' }));
    const id = await startSandbox();
    await owner('POST', `${sandboxes}/${id}/pause`, {});
    await world.ann('POST', `${sandboxes}/${id}/resume`);
    await owner('DELETE', `${sandboxes}/${id}`);
    const codes = ['paused_by_owner', 'resumed_by_owner', 'deleted_by_owner'];
    expect(await requestsOf(id)).toEqual([['ann', null], ...codes.map((code) => ['ann', code])]);
  });
});

const eventsOf = async (id: string, kind: string) =>
  items(await admin('GET', `${conversations}/${id}/events?kinds=${kind}`)) as Record<string, unknown>[];
const say = (text: string) => ({ content: [{ type: 'text', text }] });

describe('a conversation that an administrator takes part in', () => {
  test('names it in the events and the transcript, and not its owner', async () => {
    const id = await readyConversation(world, { initial_message: say('hello') });
    await admin('POST', `${conversations}/${id}/messages`, say('ask'));
    const asked = await until(() => eventsOf(id, 'permission_requested'), ({ length }) => length > 0, 60_000);
    const permission = String((asked[0]?.['data'] as Record<string, unknown> | undefined)?.['permission_id']);
    await admin('POST', `${conversations}/${id}/permissions/${permission}`, { option_id: 'yes' });
    await until(() => eventsOf(id, 'turn_ended'), ({ length }) => length === 2, 60_000);
    const users = async (kind: string) => (await eventsOf(id, kind)).map((event) => event['user_id']);
    expect([await users('message'), await users('permission_answered'), await users('turn_started')]).toEqual([['ann', 'root'], ['root'], [null, null]]);
    expect(items(await world.ann('GET', `${conversations}/${id}/transcript?format=json`))).toMatchObject([
      { text: 'hello', user_id: 'ann' }, { text: 'ask', user_id: 'root' }, { kind: 'permission', actor: 'user', user_id: 'root' },
      { kind: 'tool_call' },
    ]);
    const markdown = String((await world.ann('GET', `${conversations}/${id}/transcript`)).body);
    expect(markdown.match(/## .*(?=, 2)/g)).toEqual(['## User', '## User `root`']);
    expect(markdown).toContain('- Permission for `rm`: allowed by the user `root` (`Yes`).');
  });

  test('has the user who cancelled a turn and who deleted it, and Skep deletes its sandbox', async () => {
    const id = await readyConversation(world, { initial_message: say('stall') });
    await until(() => eventsOf(id, 'turn_started'), ({ length }) => length === 1, 60_000);
    await admin('POST', `${conversations}/${id}/cancel`, {});
    const [ended] = await until(() => eventsOf(id, 'turn_ended'), ({ length }) => length === 1, 60_000);
    expect(ended).toMatchObject({ actor: 'user', user_id: 'root', data: { stop_reason: 'cancelled' } });
    const sandbox = String(object(await world.ann('GET', `${conversations}/${id}`))['sandbox_id']);
    await admin('DELETE', `${conversations}/${id}`);
    const deletion = async () =>
      (items(await world.ann('GET', '/api/v1/events?limit=100')) as Record<string, unknown>[])
        .filter((event) => event['kind'] === 'conversation_deleted' || (event['data'] as Record<string, unknown>)['to'] === null)
        .filter((event) => event['conversation_id'] === id || event['sandbox_id'] === sandbox);
    expect(await until(deletion, (events) => events.some((event) => event['sandbox_id'] === sandbox && event['kind'] === 'sandbox_moved'), 60_000))
      .toMatchObject(expect.arrayContaining([
        expect.objectContaining({ kind: 'conversation_deleted', actor: 'user', user_id: 'root', owner_id: 'ann' }),
        expect.objectContaining({ kind: 'sandbox_moved', actor: 'skep', user_id: null, status_reason: { code: 'deleted_with_conversation' } }),
      ]));
  });
});

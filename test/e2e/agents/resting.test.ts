import { afterAll, beforeAll, expect, test } from 'vitest';
import { acpAgentCommand } from '../../doubles/acp-agent/start.ts';
import { acpScript } from '../../doubles/acp-agent/steps.ts';
import { object } from '../../support/client.ts';
import { messageOf, startConversation, answersIn, type ConversationClient } from '../../support/conversation.ts';
import { until } from '../../support/until.ts';
import { createScene, type Scene } from './scene.ts';

let scene: Scene;
let talk: ConversationClient;
const sandbox = async () => `/api/v1/sandboxes/${await talk.sandboxId()}`;

beforeAll(async () => {
  const agent = { protocol: 'acp', command: acpAgentCommand() };
  const command = ['sh', '-c', 'while :; do sleep 1000; done'];
  scene = await createScene({ config: () => ({
    specs: [
      { id: 'scripted', command, agent, rest: { freeze_after: '2s' } },
      { id: 'impatient', command, agent: { ...agent, turn_timeout: '2s', permission_timeout: '2s' } },
    ],
  }) });
});
afterAll(() => scene?.close());

const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' as const }];
const script = acpScript({ tool: { toolCallId: 'c', title: 'rm' } }, { ask: { toolCallId: 'c', title: 'rm', options } }, { say: ' and done' });

test('the idle policy freezes a sandbox during a permission request, and the answer resumes it', async () => {
  talk = await startConversation(() => scene.call, { initial_message: messageOf(script) });
  const { data } = await talk.event('permission_requested');
  const resting = await until(() => talk.now(), ({ sandbox_status: status }) => status === 'PAUSED', 60_000);
  expect(resting).toMatchObject({ execution_status: 'waiting_for_permission' });
  await talk.post(`/permissions/${String(data['permission_id'])}`, { option_id: 'yes' });
  const turn = await talk.turn();
  expect(turn.stopReason).toBe('end_turn');
  expect(answersIn(turn).join('')).toBe('chosen: yes and done');
});

test('an answer or a cancel resumes a frozen sandbox and ends its turn, even after kill -9 of the server', async () => {
  for (const [end, isKilledAgain] of [['end_turn', false], ['cancelled', false], ['cancelled', true]] as const) {
    const messageId = await talk.say(script);
    const started = await talk.event('turn_started', ({ data }) => data['message_id'] === messageId);
    const { data } = await talk.event('permission_requested', () => true, started.id);
    await until(() => talk.now(), ({ sandbox_status: status }) => status === 'PAUSED', 60_000);
    await scene.crash();
    expect(await talk.now()).toMatchObject({ execution_status: 'waiting_for_permission', sandbox_status: 'PAUSED' });
    if (end === 'cancelled') await talk.post('/cancel');
    else await talk.post(`/permissions/${String(data['permission_id'])}`, { option_id: 'yes' });
    if (isKilledAgain) await scene.crash();
    const turn = await talk.turn(messageId);
    expect([turn.stopReason, answersIn(turn).join('')]).toEqual([end, end === 'cancelled' ? 'chosen: nothing' : 'chosen: yes and done']);
    expect(turn.events.filter(({ kind }) => kind === 'permission_requested')).toHaveLength(1);
  }
  expect((await talk.events()).filter(({ kind }) => kind === 'agent_started')).toHaveLength(1);
});

test('a turn is shown as frozen, and as interrupted by its owner after a stop', async () => {
  const messageId = await talk.say(acpScript({ stall: 'heeds' }));
  await talk.event('message_chunk', ({ data }) => data['text'] === 'stalling.');
  expect(object(await scene.call('POST', `${await sandbox()}/pause`, { pause_kind: 'freeze' }))).toMatchObject({ status: 'PAUSED', paused_by: 'user' });
  expect(await talk.now()).toMatchObject({ execution_status: 'frozen' });
  await talk.event('execution_changed', ({ data }) => data['to'] === 'frozen');
  await scene.call('POST', `${await sandbox()}/resume`);
  await talk.event('execution_changed', ({ data }) => data['from'] === 'frozen' && data['to'] === 'running');
  await scene.call('POST', `${await sandbox()}/pause`, { pause_kind: 'stop' });
  expect((await talk.turn(messageId)).stopReason).toBe('interrupted');
  const ended = await talk.event('turn_ended', ({ data }) => data['message_id'] === messageId);
  expect(ended).toMatchObject({ actor: 'user', reason: 'The sandbox was stopped during the turn. Paused on request.' });
  expect(await talk.now()).toMatchObject({ status_reason: { code: 'sandbox_stopped', cause: { code: 'paused_by_owner' } } });
});

test('a silent turn and an unanswered permission request end after the timeouts of the spec', async () => {
  const impatient = await startConversation(() => scene.call, { sandbox_spec_id: 'impatient', initial_message: messageOf(script) });
  const answered = await impatient.event('permission_answered');
  expect(answered).toMatchObject({ actor: 'skep', reason: 'Nobody answered within 2 s.', data: { option_id: null } });
  await impatient.turn();
  const messageId = await impatient.say(acpScript({ stall: 'heeds' }));
  expect((await impatient.turn(messageId)).stopReason).toBe('failed');
  expect(await impatient.now()).toMatchObject({ execution_status: 'error', status_reason: { code: 'turn_silent', within_ms: 2000 } });
});

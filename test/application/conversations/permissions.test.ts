import { describe, expect, test } from 'vitest';
import type { PermissionOption } from '../../../src/domain/permission.ts';
import { createReady, failureOf } from './support.ts';
import { calm, said, told, until } from './world.ts';

const once: PermissionOption = { optionId: 'once', name: 'Once', kind: 'allow_once' };
const always: PermissionOption = { optionId: 'always', name: 'Always', kind: 'allow_always' };
const never: PermissionOption = { optionId: 'never', name: 'No', kind: 'reject_once' };

/** A conversation whose agent requests a permission for each of the named things, at once. */
async function asking(permissions: 'allow' | 'ask' | 'deny', options: readonly PermissionOption[] = [always, once, never], things: readonly string[] = ['rm']) {
  const answers: (string | null)[] = [];
  const w = await createReady({
    agent: { permissions },
    script: async (turn) => {
      await turn.say('may I?');
      answers.push(...(await Promise.all(things.map((title) => turn.ask({ toolCallId: title, title, options })))));
    },
  });
  await w.conversations.send('me', w.id, said('go'));
  const asked = () => until(async () => (await w.record()).permission);
  return { ...w, answers, asked };
}

describe('a permission request', () => {
  test.each([
    ['allow', [always, once, never], 'once'],
    ['allow', [always, never], 'always'],
    ['deny', [always, once, never], 'never'],
    ['deny', [once], null],
    ['allow', [never], null],
  ] as const)('with the policy %s is answered at once with the narrowest option', async (policy, options, expected) => {
    const w = await asking(policy, options);
    await w.rested();
    expect(w.answers).toEqual([expected]);
    const log = await w.log();
    expect(told(log, 'permission_answered')).toMatchObject([{ optionId: expected }]);
    expect(log.find(({ kind }) => kind === 'permission_answered')).toMatchObject({ actor: 'skep', reason: { policy } });
    expect(told(log, 'execution_changed').map(({ to }) => to)).toEqual(['idle', 'running', 'idle']);
  });

  test('has a limited size in the record and in the log', async () => {
    const w = await asking('ask', [once], ['x'.repeat(1_000_000)]);
    expect((await w.asked())?.title.length).toBeLessThan(70_000);
    expect(JSON.stringify(told(await w.log(), 'permission_requested')).length).toBeLessThan(150_000);
  });

  test('with the policy ask waits for its owner, and has an event', async () => {
    const w = await asking('ask');
    const permission = await w.asked();
    expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'waiting_for_permission' } });
    expect(permission).toMatchObject({ requestedAt: w.clock.now() });
    const kinds = (await w.log()).map(({ kind }) => kind);
    expect(kinds.indexOf('message_chunk')).toBeLessThan(kinds.indexOf('permission_requested'));
    const { permissionId } = permission ?? { permissionId: '' };
    expect(told(await w.log(), 'permission_requested')).toMatchObject([{ permissionId, title: 'rm', options: [always, once, never] }]);
    expect(await failureOf(w.conversations.answerPermission('me', w.id, 'perm-x', 'once'))).toMatchObject({ code: 'permission_not_found' });
    expect(await failureOf(w.conversations.answerPermission('you', w.id, permissionId, 'once'))).toMatchObject({ code: 'conversation_not_found' });
    expect(await failureOf(w.conversations.answerPermission('me', w.id, permissionId, 'maybe'))).toMatchObject({
      code: 'invalid_request',
      context: { problems: [{ argument: 'optionId', reason: { code: 'unknown_option', options: ['always', 'once', 'never'] } }] },
    });
    const answered = await w.conversations.answerPermission('me', w.id, permissionId, 'never');
    expect(answered).toMatchObject({ conversation: { permission: null } });
    await w.rested();
    expect(w.answers).toEqual(['never']);
    expect((await w.log()).filter(({ kind }) => kind === 'permission_answered')).toMatchObject([{ actor: 'user', data: { permissionId, optionId: 'never' } }]);
    expect(told(await w.log(), 'execution_changed').map(({ to }) => to)).toEqual(['idle', 'running', 'waiting_for_permission', 'running', 'idle']);
    expect(await failureOf(w.conversations.answerPermission('me', w.id, permissionId, 'never'))).toMatchObject({ code: 'permission_not_found' });
  });

  test('waits until the request before it is answered', async () => {
    const w = await asking('ask', undefined, ['rm', 'mv']);
    for (const title of ['rm', 'mv']) {
      const permission = await until(async () => (await w.record()).permission, (found) => found?.title === title);
      await w.conversations.answerPermission('me', w.id, permission?.permissionId ?? '', title === 'rm' ? 'once' : 'never');
    }
    await w.rested();
    expect(w.answers).toEqual(['once', 'never']);
  });

  test('accepts only one of two answers at once', async () => {
    const w = await asking('ask');
    const { permissionId } = (await w.asked()) ?? { permissionId: '' };
    const outcomes = await Promise.all(['once', 'never'].map((option) => failureOf(w.conversations.answerPermission('me', w.id, permissionId, option))));
    expect(outcomes.filter((one) => one === null)).toHaveLength(1);
    expect(outcomes.find((one) => one !== null)).toMatchObject({ code: 'permission_not_found' });
    await w.rested();
    expect(w.answers).toEqual([outcomes[0] === null ? 'once' : 'never']);
    expect(told(await w.log(), 'permission_answered')).toHaveLength(1);
  });

  test('is withdrawn if the turn is cancelled, the agent ends, or the conversation is deleted', async () => {
    const cancelled = await asking('ask');
    await cancelled.asked();
    await cancelled.conversations.cancel('me', cancelled.id);
    await cancelled.rested();
    expect(cancelled.answers).toEqual([null]);
    expect(told(await cancelled.log(), 'permission_answered')).toMatchObject([{ optionId: null }]);

    const crashed = await asking('ask');
    await crashed.asked();
    crashed.host.executed.at(-1)?.end(1);
    await crashed.rested();
    expect(told(await crashed.log(), 'permission_answered', 'turn_ended')).toMatchObject([{ optionId: null }, { stopReason: 'interrupted' }]);

    const deleted = await asking('ask');
    await deleted.asked();
    await deleted.conversations.delete('me', deleted.id);
    await calm();
    expect(deleted.host.running).toEqual([]);
    expect(told(await deleted.log(), 'permission_answered', 'turn_ended', 'conversation_deleted').map(({ kind }) => kind)).toEqual(['permission_answered', 'turn_ended', 'conversation_deleted']);
  });
});

import { describe, expect, test } from 'vitest';
import type { Event } from '../../../src/domain/event.ts';
import { isFailure } from '../../../src/domain/failure.ts';
import { Faults } from '../mortal.ts';
import { createWorld, plain, said, stepsIn, until, type World } from './world.ts';

/*
 * Skep is killed at every call on a port, from the start of a conversation to the end of its second turn, once before the
 * call has its effect and once after. The next process must complete the start, send every accepted message that the agent
 * did not get, and leave no status `running`. Then the same with a call that only fails, before or after its effect, while
 * the process continues.
 */

const steps = ['WORKING', 'WAITING_FOR_SANDBOX', 'PREPARING_REPOSITORY', 'LISTING_MICROAGENTS', 'STARTING_AGENT', 'READY'];

function world(): World {
  return createWorld({
    agent: { permissions: 'ask' },
    script: async (turn) => {
      const text = turn.message.content.at(-1)?.text ?? '';
      await turn.say('I hear ');
      await turn.say(`"${text}"`);
      await turn.tool({ toolCallId: `call ${text}`, title: 'edit', status: 'in_progress' });
      const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' as const }];
      if (text === 'two') await turn.ask({ toolCallId: `call ${text}`, title: 'edit', options });
      await turn.tool({ toolCallId: `call ${text}`, status: 'completed' });
      await turn.say('done');
    },
  });
}

/** A client of one process. An answered message is acknowledged. If the process dies, nothing more is acknowledged. */
async function talk(world: World, faults?: Faults) {
  const skep = world.boot(faults);
  const { mortal, conversations } = skep;
  const acknowledged: string[] = [];
  let id: string | null = null;
  const died = async (): Promise<null> => {
    await until(() => mortal.isDead);
    return null;
  };
  const answer = async <T>(call: Promise<T>): Promise<T | null> => {
    let over = false;
    const answered = call.then((value) => value, refused).finally(() => (over = true));
    return await Promise.race([answered, until(() => over || mortal.isDead).then(() => (mortal.isDead ? null : died()))]);
  };
  const idle = async (): Promise<void> => {
    await until(async () => mortal.isDead || (await sweptToRest(world, skep, id ?? '')));
  };
  void skep.sweeper.start();
  const view = await answer(conversations.start('me', { ...plain, selectedRepository: 'acme/shop', initialMessage: said('one') }));
  if (view === null) return { skep, acknowledged, id };
  id = view.conversation.id;
  acknowledged.push('one');
  await idle();
  if (!mortal.isDead && (await answer(conversations.send('me', id, said('two')))) !== null) acknowledged.push('two');
  await idle();
  return { skep, acknowledged, id };
}

function refused(error: unknown): null {
  if (isFailure(error)) return null;
  throw error;
}

/** Allows a requested permission and sweeps once. Returns whether no work is left. */
async function sweptToRest(world: World, skep: ReturnType<World['boot']>, id: string): Promise<boolean> {
  const { permission } = (await world.store.conversations.find(id)) ?? { permission: null };
  if (permission !== null) void skep.conversations.answerPermission('me', id, permission.permissionId, 'yes').catch(refused);
  if (!skep.mortal.isDead) void skep.sweeper.sweep().catch(refused);
  world.clock.advance(20);
  return await atRest(world, id);
}

async function atRest(world: World, id: string): Promise<boolean> {
  const record = await world.store.conversations.find(id);
  if (record === null) return true;
  if (record.startStatus === 'ERROR') return true;
  return record.startStatus === 'READY' && record.turn === null && record.queue.length === 0;
}

async function count(): Promise<readonly string[]> {
  const { skep, acknowledged } = await talk(world());
  expect(acknowledged).toEqual(['one', 'two']);
  await skep.close();
  return skep.mortal.calls;
}

const calls = await count();

/** Plans a fault of the call with this number, from 1. */
function faultAt(call: number, when: 'before' | 'after', what: 'death' | 'unavailable'): Faults {
  const faults = new Faults();
  faults.plan({ call: null, what, when, skip: call - 1 });
  return faults;
}

describe.each(['before', 'after'] as const)('a process killed %s a call has its effect', (when) => {
  test.each(calls.map((call, index) => [index + 1, call] as const))('%i: %s', async (call) => {
    const made = world();
    const { skep: first, acknowledged, id: known } = await talk(made, faultAt(call, when, 'death'));
    first.mortal.die();
    const [record] = (await made.store.conversations.search('me', {}, 'CREATED_AT', { after: null, limit: 10 })).items;
    const id = known ?? record?.id ?? null;
    const second = made.boot();
    try {
      await second.sweeper.start();
      if (id === null) return;
      await until(() => sweptToRest(made, second, id));
      await invariants(made, id, acknowledged);
      await second.conversations.send('me', id, said('three'));
      await until(async () => made.handed.some((text) => text.endsWith('three')) && (await atRest(made, id)));
      await invariants(made, id, [...acknowledged, 'three']);
      expect(await second.conversations.get('me', id)).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: null }, sandboxStatus: 'RUNNING' });
      expect(made.host.running).toHaveLength(1);
    } finally {
      await second.close();
    }
    expect(made.host.running).toHaveLength(0);
  });
});

describe.each(['before', 'after'] as const)('a call that fails %s it has its effect', (when) => {
  test.each(calls.map((call, index) => [index + 1, call] as const))('%i: %s', async (call, name) => {
    const made = world();
    const faults = faultAt(call, when, 'unavailable');
    const { skep, acknowledged } = await talk(made, faults);
    // Work besides the turns can change the order of the calls, so this call may not have come yet.
    faults.planned.length = 0;
    try {
      const [record] = (await made.store.conversations.search('me', {}, 'CREATED_AT', { after: null, limit: 10 })).items;
      if (record === undefined) return;
      const { id } = record;
      await until(() => sweptToRest(made, skep, id));
      const found = await made.store.conversations.find(id);
      if (found?.startStatus === 'ERROR') {
        expect(stepsIn(await made.log(id)).at(-1)).toBe('ERROR');
        expect(JSON.stringify(found.statusReason)).toContain('a planted fault');
        expect(made.handed).toEqual([]);
        // A command whose start could not be reported ends with its connection.
        if (name === 'runtime.execute' && when === 'after') made.host.executed.at(-1)?.end(null);
        expect(made.host.running).toHaveLength(0);
        return;
      }
      await invariants(made, id, acknowledged);
      await skep.conversations.send('me', id, said('three'));
      // Failed work is retried later, so time must pass.
      await until(async () => (await sweptToRest(made, skep, id)) && made.handed.some((text) => text.endsWith('three')));
      await invariants(made, id, [...acknowledged, 'three']);
      expect(made.host.running).toHaveLength(1);
    } finally {
      await skep.close();
    }
    expect(made.host.running).toHaveLength(0);
  });
});

async function invariants(world: World, id: string, acknowledged: readonly string[]): Promise<void> {
  const record = await world.store.conversations.find(id);
  const log = await world.log(id);
  expect(record).toMatchObject({ startStatus: 'READY', turn: null, permission: null, queue: [] });
  expect(record?.executionStatus).not.toBe('running');
  expect(stepsIn(log)).toEqual(steps);
  const statuses = log.flatMap((event) => (event.kind === 'execution_changed' ? [event.data] : []));
  for (const [index, { from }] of statuses.entries()) expect(from).toBe(statuses[index - 1]?.to ?? null);
  expect(statuses.at(-1)?.to).toBe(record?.executionStatus);

  const taken = log.flatMap((event) => (event.kind === 'message' && event.data.role === 'user' ? [event.data] : []));
  for (const text of acknowledged) expect(taken.filter((one) => one.text === text), text).toHaveLength(1);
  for (const { messageId, text } of taken) {
    const handed = world.handed.filter((one) => one === text || one.endsWith(`|${text}`)).length;
    expect(handed, text).toBeLessThanOrEqual(1);
    const turns = log.filter((event) => (event.kind === 'turn_started' || event.kind === 'turn_ended') && event.data.messageId === messageId);
    expect(turns.map(({ kind }) => kind)).toEqual(['turn_started', 'turn_ended']);
    const ended = turns.at(-1);
    if (handed === 0) expect(ended).toMatchObject({ data: { stopReason: 'interrupted' } });
  }
  whole(log);
}

/** Checks that each whole message is equal to its parts. */
function whole(log: readonly Event[]): void {
  for (const event of log) {
    if (event.kind !== 'message' || event.data.role !== 'agent') continue;
    const { messageId, text } = event.data;
    const parts = log.flatMap((one) => (one.kind === 'message_chunk' && one.data.messageId === messageId ? one.data.text : []));
    expect(parts.join('')).toBe(text);
  }
}

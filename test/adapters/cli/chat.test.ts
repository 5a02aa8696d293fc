import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandName } from '../../../src/adapters/cli/command-name.ts';
import { object } from '../../support/client.ts';
import { conversations, readyConversation } from '../http/support.ts';
import type { World } from '../http/world.ts';
import { apiOf, createTalkingWorld, escape, talk } from './support.ts';

let world: World;
beforeAll(async () => void (world = await createTalkingWorld()));
afterAll(() => world.close());

describe('messages', () => {
  test('are answered in order, and at the end of the input all of them are waited for', async () => {
    const chat = talk(apiOf(world), await readyConversation(world));
    for (const line of ['one', '', '  two  ', 'three']) chat.type(line);
    chat.end();
    expect(await chat.done).toBe(0);
    const said = chat.shown().split('\n').filter((line) => /^(> |heard: )/.test(line));
    expect(said.filter((line) => line.startsWith('>'))).toEqual(['> one', '> two', '> three']);
    expect(said.filter((line) => line.startsWith('h'))).toEqual(['heard: one', 'heard: two', 'heard: three']);
  });

  test('that are sent before the conversation is ready wait for it', async () => {
    const id = String(object(await world.ann('POST', conversations, { selected_repository: 'acme/shop' }))['id']);
    const chat = talk(apiOf(world), id, { message: 'at once' });
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toMatch(/ {2}READY\n/);
    expect(chat.shown()).toContain('heard: ');
    expect(chat.shown()).toMatch(/at once\n/);
  });

  test('that are typed before the conversation is ready are sent before /quit leaves', async () => {
    const id = String(object(await world.ann('POST', conversations, {}))['id']);
    const chat = talk(apiOf(world), id);
    for (const line of ['one', 'two', '/quit']) chat.type(line);
    expect(await chat.done).toBe(0);
    const later = talk(apiOf(world), id);
    await later.sees('heard: two');
    later.end();
    expect(await later.done).toBe(0);
    expect(later.shown()).toContain('> one\n');
  });

  test('run on as their parts come, and tool calls have lines of their own', async () => {
    const chat = talk(apiOf(world), await readyConversation(world), { message: 'parts' });
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toContain('hm\none two three\n  [completed] Read a file (/workspace/a.txt)\ndone');
    expect(chat.shown().match(/one two three/g)).toHaveLength(1);
  });

  test('of before are shown when a conversation is joined, and what failed then is history', async () => {
    const id = await readyConversation(world);
    const first = talk(apiOf(world), id);
    first.type('fail');
    first.type('again');
    first.end();
    expect(await first.done).toBe(1);
    expect(first.shown()).toMatch(/the turn ended: failed: .*the model is away/);
    const second = talk(apiOf(world), id);
    second.end();
    expect(await second.done).toBe(0);
    expect(second.shown()).toContain('heard: again');
  });

  test('that the server refuses are told of', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id);
    chat.type('x'.repeat(100_001));
    chat.type('small');
    chat.end();
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toContain('the message: ');
    expect(chat.shown()).toContain('heard: small');
  });
});

describe('permissions', () => {
  test('are answered by number, with lines that nobody can forge', async () => {
    const id = await readyConversation(world, { permission_policy: 'ask' });
    const chat = talk(apiOf(world), id);
    chat.type('ask');
    await chat.sees('  2  ');
    expect(chat.shown()).toContain('The agent asks for permission: Write a file\n  1  Yes, once\n  2  No 3 Everything\n');
    for (const wrong of ['3', '0', 'yes', '1.0']) chat.type(wrong);
    chat.type('1');
    await chat.sees('chosen: yes');
    expect(chat.shown().match(/Answer with a number from 1 to 2\./g)).toHaveLength(4);
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).not.toContain(escape);
  });

  test('that nobody is there for are left to somebody else', async () => {
    const id = await readyConversation(world, { permission_policy: 'ask' });
    const chat = talk(apiOf(world), id, { message: 'ask' });
    chat.end();
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toContain(`The agent waits for a permission, but the input has ended. Answer with ${commandName} chat --conversation ${id}`);
    const other = talk(apiOf(world), id);
    await other.sees('  2  ');
    other.type('2');
    await other.sees('chosen: no');
    other.end();
    expect(await other.done).toBe(0);
  });

  test('of before are answered by the first line, and what follows is done before the end of the input leaves', async () => {
    const id = await readyConversation(world, { permission_policy: 'ask' });
    const chat = talk(apiOf(world), id, { message: 'ask' });
    chat.end();
    expect(await chat.done).toBe(1);
    const later = talk(apiOf(world), id);
    for (const line of ['1', '/diff']) later.type(line);
    later.end();
    // It has no repository.
    expect(await later.done).toBe(1);
    expect(later.shown()).toMatch(/chosen: yes[^]*The changes of the conversation/);
    expect(later.shown()).not.toContain('AbortError');
  });

  test('that the policy answers need nobody', async () => {
    const chat = talk(apiOf(world), await readyConversation(world, { permission_policy: 'deny' }), { message: 'ask' });
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toContain('chosen: no');
    expect(chat.shown()).not.toContain('the input has ended');
  });
});

test('for a program, each event is a line of JSON', async () => {
  const chat = talk(apiOf(world), await readyConversation(world), { message: 'hello', json: true });
  chat.end();
  expect(await chat.done).toBe(0);
  const events = chat.shown().trim().split('\n').map((line) => JSON.parse(line) as { kind: string; conversation_id: string });
  expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['message', 'turn_ended']));
  expect(events.at(-1)).toMatchObject({ conversation_id: expect.any(String), at: expect.any(String) });
});

describe('a turn', () => {
  test('is stopped by /cancel, also while it waits for a permission', async () => {
    const chat = talk(apiOf(world), await readyConversation(world));
    chat.type('stall');
    await chat.sees('stalling.');
    chat.type('/cancel');
    await chat.sees('the turn ended: cancelled');
    chat.type('ask');
    await chat.sees('  2  ');
    chat.type('/cancel');
    await chat.sees('the request was withdrawn');
    chat.end();
    expect(await chat.done).toBe(0);
  });

  test('that fails, or whose agent ends, is an exit code of 1', async () => {
    for (const line of ['fail', 'crash']) {
      const chat = talk(apiOf(world), await readyConversation(world), { message: line });
      chat.end();
      expect(await chat.done).toBe(1);
    }
  });
});

describe('what there is no talking with', () => {
  test('a start that failed', async () => {
    const id = String(object(await world.ann('POST', conversations, { sandbox_spec_id: 'broken' }))['id']);
    const chat = talk(apiOf(world), id, { message: 'hello' });
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toMatch(/ {2}ERROR: The start failed at WAITING_FOR_SANDBOX/);
    const later = talk(apiOf(world), id);
    expect(await later.done).toBe(1);
    expect(later.shown()).toMatch(/ {2}ERROR: The start failed at WAITING_FOR_SANDBOX/);
  });

  test('a spec without an agent', async () => {
    const id = String(object(await world.ann('POST', conversations, { sandbox_spec_id: 'plain' }))['id']);
    const chat = talk(apiOf(world), id);
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toContain('The spec of this conversation names no agent');
  });

  test('a conversation that is ended meanwhile', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id);
    chat.type('hello');
    await chat.sees('heard: hello');
    await world.ann('DELETE', `${conversations}/${id}`);
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toContain('the conversation was ended');
  });

  test('a sandbox that is lost with messages that wait', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id);
    chat.type('stall');
    chat.type('never');
    await chat.sees('stalling.');
    const { sandbox_id: sandboxId } = object(await world.ann('GET', `${conversations}/${id}`));
    world.engine.crash(String(sandboxId));
    chat.end();
    expect(await chat.done).toBe(1);
  });

  test('none at all, or no key', async () => {
    await expect(talk(apiOf(world), 'conv-none').done).rejects.toMatchObject({ name: 'SkepError', message: expect.stringContaining('conv-none') });
    await expect(talk(apiOf(world, 'wrong'), 'conv-none').done).rejects.toMatchObject({ name: 'SkepError', message: expect.stringContaining('API key') });
  });
});

test('no control sequence of others reaches the terminal', async () => {
  const id = await readyConversation(world, { title: `${escape}[31m` });
  const chat = talk(apiOf(world), id, { message: 'steer' });
  chat.end();
  expect(await chat.done).toBe(0);
  expect(chat.shown()).toMatch(/\nab?c.*d.*e.*f\n/);
  // oxlint-disable-next-line no-control-regex -- they are what must not be there
  expect(chat.shown()).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
});

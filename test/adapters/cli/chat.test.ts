import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandName } from '../../../src/client/command-name.ts';
import { object } from '../../support/client.ts';
import { conversations, readyConversation } from '../http/support.ts';
import type { World } from '../http/world.ts';
import { apiOf, createTalkingWorld, escape, talk } from './support.ts';

let world: World;
beforeAll(async () => void (world = await createTalkingWorld()));
afterAll(() => world.close());

describe('messages', () => {
  test('are answered in order, and the chat ends after the last answer', async () => {
    const chat = talk(apiOf(world), await readyConversation(world));
    for (const line of ['one', '', '  two  ', 'three']) chat.type(line);
    chat.end();
    expect(await chat.done).toBe(0);
    const said = chat.shown().split('\n').filter((line) => /^(> |heard: )/.test(line));
    expect(said.filter((line) => line.startsWith('>'))).toEqual(['> one', '> two', '> three']);
    expect(said.filter((line) => line.startsWith('h'))).toEqual(['heard: one', 'heard: two', 'heard: three']);
  });

  test('wait until the conversation is READY', async () => {
    const id = String(object(await world.ann('POST', conversations, { selected_repository: 'acme/shop' }))['id']);
    const chat = talk(apiOf(world), id, { message: 'at once' });
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toMatch(/ {2}READY\n/);
    expect(chat.shown()).toContain('heard: ');
    expect(chat.shown()).toMatch(/at once\n/);
  });

  test('that are typed before the conversation is READY are sent before /quit ends the chat', async () => {
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

  test('of the agent are shown once, with their parts on one line, and tool calls are shown on separate lines', async () => {
    const chat = talk(apiOf(world), await readyConversation(world), { message: 'parts' });
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toContain('hm\none two three\n  [completed] Read a file (/workspace/a.txt)\ndone');
    expect(chat.shown().match(/one two three/g)).toHaveLength(1);
  });

  test('of the past are shown when a chat joins, and an earlier failed turn does not change its exit code', async () => {
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

  test('that the server refuses are reported, and later ones are still sent', async () => {
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

describe('permission requests', () => {
  test('are answered by number, and the name of an option cannot forge another line', async () => {
    const id = await readyConversation(world, { permission_policy: 'ask' });
    const chat = talk(apiOf(world), id);
    chat.type('ask');
    await chat.sees('  2  ');
    expect(chat.shown()).toContain('The agent asks for permission:\n  | Write\n  | a file\n  1  Yes, once\n  2  No 3 Everything\n');
    for (const wrong of ['3', '0', 'yes', '1.0']) chat.type(wrong);
    chat.type('1');
    await chat.sees('chosen: yes');
    expect(chat.shown().match(/Answer with a number from 1 to 2\./g)).toHaveLength(4);
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).not.toContain(escape);
  });

  test('are left to another chat if the input has ended', async () => {
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

  test('of the past are answered by the first line, and the lines after it are run before the chat ends', async () => {
    const id = await readyConversation(world, { permission_policy: 'ask' });
    const chat = talk(apiOf(world), id, { message: 'ask' });
    chat.end();
    expect(await chat.done).toBe(1);
    const later = talk(apiOf(world), id);
    for (const line of ['1', '/diff']) later.type(line);
    later.end();
    // `/diff` fails, since the conversation has no repository.
    expect(await later.done).toBe(1);
    expect(later.shown()).toMatch(/chosen: yes[^]*The changes of the conversation/);
    expect(later.shown()).not.toContain('AbortError');
  });

  test('that the policy answers need no input', async () => {
    const chat = talk(apiOf(world), await readyConversation(world, { permission_policy: 'deny' }), { message: 'ask' });
    chat.end();
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toContain('chosen: no');
    expect(chat.shown()).not.toContain('the input has ended');
  });
});

test('a chat with JSON output writes each event as a line of JSON', async () => {
  const chat = talk(apiOf(world), await readyConversation(world), { message: 'hello', json: true });
  chat.end();
  expect(await chat.done).toBe(0);
  const events = chat.shown().trim().split('\n').map((line) => JSON.parse(line) as { kind: string; conversation_id: string });
  expect(events.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['message', 'turn_ended']));
  expect(events.at(-1)).toMatchObject({ conversation_id: expect.any(String), at: expect.any(String) });
});

describe('a turn', () => {
  test('is cancelled by /cancel, even while it waits for a permission', async () => {
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

  test('ends before a command that comes after its message from a pipe, unless the agent needs an answer', async () => {
    // `/diff` fails, since the conversation has no repository.
    const id = await readyConversation(world, { permission_policy: 'ask' });
    const chat = talk(apiOf(world), id);
    for (const line of ['stall', '/diff']) chat.type(line);
    await chat.sees('stalling.');
    await world.ann('POST', `${conversations}/${id}/cancel`);
    await chat.sees('The changes of the conversation');
    expect(chat.shown()).toMatch(/the turn ended: cancelled[^]*The changes of the conversation/);
    for (const line of ['ask', '/diff', '/publish', '1']) chat.type(line);
    chat.end();
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toMatch(
      / {2}2 {2}No[^]*The changes of the conversation[^]*Nothing is published while the agent waits[^]*chosen: yes/,
    );
  });

  test('makes the exit code 1 if it fails or its agent ends', async () => {
    for (const line of ['fail', 'crash']) {
      const chat = talk(apiOf(world), await readyConversation(world), { message: line });
      chat.end();
      expect(await chat.done).toBe(1);
    }
  });
});

describe('a chat', () => {
  test('ends with the reason if the start of its conversation fails or has failed', async () => {
    const id = String(object(await world.ann('POST', conversations, { sandbox_spec_id: 'broken' }))['id']);
    const chat = talk(apiOf(world), id, { message: 'hello' });
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toMatch(/ {2}ERROR: The start failed at WAITING_FOR_SANDBOX/);
    const later = talk(apiOf(world), id);
    expect(await later.done).toBe(1);
    expect(later.shown()).toMatch(/ {2}ERROR: The start failed at WAITING_FOR_SANDBOX/);
  });

  test('ends with the reason if its spec has no agent', async () => {
    const id = String(object(await world.ann('POST', conversations, { sandbox_spec_id: 'plain' }))['id']);
    const chat = talk(apiOf(world), id);
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toContain('The spec of this conversation names no agent');
  });

  test('ends when its conversation is deleted', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id);
    chat.type('hello');
    await chat.sees('heard: hello');
    await world.ann('DELETE', `${conversations}/${id}`);
    expect(await chat.done).toBe(1);
    expect(chat.shown()).toContain('the conversation was ended');
  });

  test('ends if its sandbox crashes while messages wait', async () => {
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

  test('fails if its conversation does not exist or its key is wrong', async () => {
    await expect(talk(apiOf(world), 'conv-none').done).rejects.toMatchObject({ name: 'SkepError', message: expect.stringContaining('conv-none') });
    await expect(talk(apiOf(world, 'wrong'), 'conv-none').done).rejects.toMatchObject({ name: 'SkepError', message: expect.stringContaining('API key') });
  });
});

test('control sequences in a title or a message do not reach the terminal', async () => {
  const id = await readyConversation(world, { title: `${escape}[31m` });
  const chat = talk(apiOf(world), id, { message: 'steer' });
  chat.end();
  expect(await chat.done).toBe(0);
  expect(chat.shown()).toMatch(/\nab?c.*d.*e.*f\n/);
  // oxlint-disable-next-line no-control-regex -- these must not be in the output
  expect(chat.shown()).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
});

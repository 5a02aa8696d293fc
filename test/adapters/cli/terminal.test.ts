import { PassThrough } from 'node:stream';
import { setImmediate as tick } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Terminal } from '../../../src/adapters/cli/chat-terminal.ts';
import { commandName } from '../../../src/client/command-name.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { conversations, readyConversation } from '../http/support.ts';
import type { World } from '../http/world.ts';
import { apiOf, createTalkingWorld, talk } from './support.ts';

let world: World;
beforeAll(async () => void (world = await createTalkingWorld()));
afterAll(() => world.close());

/** Returns the rows that a terminal shows. Knows only what readline sends. */
function drawn(output: string, columns: number): string[] {
  const rows = [''];
  let [row, column] = [0, 0];
  for (const [character, count, command] of output.replaceAll('\u001b', '').matchAll(/\[(\d+)([A-Z])|[^]/g)) {
    if (command === 'A') row -= Number(count);
    else if (command === 'G') column = Number(count) - 1;
    else if (command === 'J') rows.splice(row, Infinity, rows[row]?.slice(0, column) ?? '');
    else if (character === '\r') column = 0;
    else if (character === '\n') [row, column] = [row + 1, 0];
    else {
      rows[row] = (rows[row] ?? '').slice(0, column) + character;
      [row, column] = column + 1 === columns ? [row + 1, 0] : [row, column + 1];
    }
  }
  return rows;
}

test('a line that is longer than the terminal is wide stays below what is printed, and erases none of it', async () => {
  const [input, output] = [new PassThrough(), Object.assign(new PassThrough({ encoding: 'utf8' }), { columns: 20 })];
  const terminal = new Terminal({ input, output, interactive: true }, { line() {}, end() {}, interrupt() {} });
  terminal.showPrompt();
  for (const key of 'x'.repeat(50)) input.write(key);
  await tick();
  terminal.write('one\n');
  terminal.write('two\n');
  terminal.write('thr');
  terminal.write('ee\n');
  expect(drawn(String(output.read()), 20)).toEqual(['one', 'two', 'three', `> ${'x'.repeat(18)}`, 'x'.repeat(20), 'x'.repeat(12)]);
  terminal.close();
});

describe('a chat at a terminal', () => {
  test('has a prompt, does not show a typed message twice, and ends with /quit', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id, { interactive: true, colored: true });
    await chat.sees('/quit leaves');
    await chat.sees('> ');
    chat.type('hello');
    await chat.sees('heard: hello');
    chat.type('/help');
    chat.type('/quit');
    expect(await chat.done).toBe(0);
    expect(chat.shown()).not.toContain('> hello\u001b[22m');
    expect(chat.shown()).toContain(`${commandName} chat --conversation ${id}`);
  });

  test('does not show a typed message twice after a refused message', async () => {
    const chat = talk(apiOf(world), await readyConversation(world), { interactive: true, colored: true });
    await chat.sees('> ');
    chat.type('x'.repeat(100_001));
    await chat.sees('the message: ');
    chat.type('hello');
    await chat.sees('heard: hello');
    chat.type('/quit');
    expect(await chat.done).toBe(1);
    expect(chat.shown()).not.toContain('> hello\u001b[22m');
  });

  test('cancels the turn with Ctrl-C, and ends with a second one', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id, { interactive: true });
    await chat.sees('> ');
    chat.type('stall');
    await chat.sees('stalling.');
    chat.key('\u0003');
    await chat.sees('the turn ended: cancelled');
    chat.key('\u0003');
    expect(await chat.done).toBe(0);
  });

  test('continues after Ctrl-Z when it is in the foreground again, with the line that was begun', async () => {
    const chat = talk(apiOf(world), await readyConversation(world), { interactive: true });
    await chat.sees('> ');
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    chat.key('hel\u001a');
    await until(() => kill.mock.calls, (calls) => calls.length > 0);
    expect(kill.mock.calls).toEqual([[process.pid, 'SIGTSTP']]);
    kill.mockRestore();
    const before = chat.shown().length;
    process.emit('SIGCONT');
    await until(() => chat.shown().slice(before), (shown) => shown.includes('> hel'));
    chat.type('lo');
    await chat.sees('heard: hello');
    chat.type('/quit');
    expect(await chat.done).toBe(0);
  });

  test('ends with Ctrl-D after the answers to all messages', async () => {
    const chat = talk(apiOf(world), await readyConversation(world), { interactive: true });
    await chat.sees('> ');
    chat.type('hello');
    chat.key('\u0004');
    expect(await chat.done).toBe(0);
    expect(chat.shown()).toMatch(/heard: hello[^]*Continue this conversation/);
  });

  test('pauses the sandbox with /pause', async () => {
    const id = await readyConversation(world);
    const chat = talk(apiOf(world), id, { interactive: true });
    await chat.sees('> ');
    chat.type('/pause');
    await chat.sees('its sandbox is PAUSED');
    await until(() => world.ann('GET', `${conversations}/${id}`), (answer) => object(answer)['sandbox_status'] === 'PAUSED', 60_000);
    chat.type('/quit');
    expect(await chat.done).toBe(0);
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolCallContent } from '../../../src/domain/agent.ts';
import { commandName } from '../../../src/client/command-name.ts';
import { readyConversation } from '../http/support.ts';
import { coderSpec, createWorld, type World } from '../http/world.ts';
import { apiOf, escape, talk } from './support.ts';

const numbered = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join('');

/** The content of the tool call of each message. */
const contents: Readonly<Record<string, readonly ToolCallContent[]>> = {
  edit: [{ type: 'diff', path: '/workspace/cart.ts', oldText: numbered(1, 40), newText: numbered(1, 40).replace('line 5\n', 'five\n').replace('line 33\n', '') }],
  create: [{ type: 'diff', path: 'new.ts', oldText: null, newText: 'one\n\ntwo' }],
  plan: [{ type: 'text', text: `# Plan\n  1  Yes${escape}[2J\r\nFirst this.\n` }],
  long: [{ type: 'text', text: `${'x'.repeat(700)}\n${numbered(2, 130)}` }],
  kept: [{ type: 'diff', path: 'a', oldText: 'same\n [... 7 more]', newText: 'same\n [... 7 more]' }],
};

const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' as const }];
const script = "cat <<'END' >  b.txt\n# one\nEND";

let world: World;
beforeAll(async () => {
  world = await createWorld({
    specs: [coderSpec],
    script: async (turn) => {
      const text = turn.message.content.at(-1)?.text ?? '';
      const call = { toolCallId: 'call-1', title: 'A call', content: contents[text] ?? [] };
      if (text === 'fail') {
        const parts = [{ type: 'diff' as const, path: 'a', oldText: null, newText: 'tried' }, { type: 'text' as const, text: 'Not enough\nmessages.' }];
        await turn.tool({ ...call, status: 'failed', content: parts });
      } else if (text === 'read') await turn.tool({ ...call, status: 'completed', content: [{ type: 'text', text: 'the whole file' }] });
      else {
        await turn.tool({ ...call, status: 'pending' });
        await turn.ask({ toolCallId: 'call-1', title: text === 'script' ? script : `Do  ${text}`, options });
        await turn.tool({ ...call, status: 'completed' });
      }
    },
  });
});
afterAll(() => world.close());

/** Returns what the screen shows of the turns of the messages. */
async function shown(...messages: readonly string[]): Promise<string> {
  const chat = talk(apiOf(world), await readyConversation(world, { permission_policy: 'allow' }));
  for (const message of messages) chat.type(message);
  chat.end();
  expect(await chat.done).toBe(0);
  return chat.shown();
}

describe('before a question, a chat shows', () => {
  test('the diff of the call, with some unchanged lines around', async () => {
    expect(await shown('edit')).toContain([
      '  [pending] A call',
      '  | --- /workspace/cart.ts', '  | +++ /workspace/cart.ts',
      '  | @@', '  |  line 2', '  |  line 3', '  |  line 4', '  | -line 5', '  | +five', '  |  line 6', '  |  line 7', '  |  line 8',
      '  | @@', '  |  line 30', '  |  line 31', '  |  line 32', '  | -line 33', '  |  line 34', '  |  line 35', '  |  line 36',
      'The agent asks for permission: Do  edit', '  1  Yes', '',
    ].join('\n'));
  });

  test('the text of a new file', async () => {
    expect(await shown('create')).toContain('  | --- /dev/null\n  | +++ new.ts\n  | @@\n  | +one\n  | +\n  | +two\nThe agent asks');
  });

  test('the text of the call, which can be neither a line of the program nor control the terminal', async () => {
    expect(await shown('plan')).toContain('  | # Plan\n  |   1  Yes\n  | First this.\nThe agent asks');
  });

  test('the beginning of a long text, and how to read all of it', async () => {
    const all = await shown('long');
    expect(all).toContain(`  | ${'x'.repeat(500)} [... 200 more]\n  | line 2\n`);
    expect(all).toContain(`  | line 100\n  This is cut, 30 more lines. All of it: in the dashboard, or by ${commandName} conversations follow conv-`);
    expect(all).not.toContain('line 101');
  });

  test('that a diff is of only the beginning of a file', async () => {
    expect(await shown('kept')).toContain('  | +++ a\n  | The server has only the beginning of this file.\nThe agent asks');
  });

  test('each line of a command of several lines', async () => {
    expect(await shown('script')).toContain("The agent asks for permission:\n  | cat <<'END' >  b.txt\n  | # one\n  | END\n  1  Yes\n");
  });

  test('nothing of a call of an earlier turn', async () => {
    const after = (await shown('create', 'other')).split('> other').at(-1);
    expect(after).toContain('  [pending] A call\nThe agent asks for permission: Do  other');
  });
});

test('a chat shows why a call failed, and nothing of the content of a call that was completed without a question', async () => {
  const all = await shown('fail', 'read');
  expect(all).toContain('  [failed] A call\n  | Not enough\n  | messages.\n');
  expect(all).toContain('  [completed] A call\n');
  expect(all).not.toMatch(/the whole file|tried/);
});

import assert from 'node:assert/strict';
import { assertFailure } from './contract.ts';
import { type Execution, type ExecutionsCase } from './sandbox-executions-harness.ts';

const tty = { cols: 91, rows: 23 };

/** Reads until the terminal shows the text. */
async function shows(execution: Execution, text: string): Promise<void> {
  for (let wanted = text.length, shown = ''; !shown.includes(text); wanted = shown.length + 1) shown = await execution.some(wanted);
}

export const terminalCases: readonly ExecutionsCase[] = [
  [
    'runs a command in a terminal, and resizes it',
    async ({ start, traits }) => {
      const execution = await start('shows its terminal', { tty, stdin: true });
      assert.equal(execution.begun.durable, traits.terminals === 'durable');
      await shows(execution, '23 91\r\n');
      await execution.resize(100, 40);
      await shows(execution, '40 100\r\n');
      assert.equal((await execution.state()).stderr.end, 0);
      await execution.remove();
    },
    'if terminals are real',
  ],
  [
    'refuses a command in a terminal',
    async ({ start }) => {
      await assertFailure(start('shows its terminal', { tty, stdin: true }), 'invalid_request');
    },
    'if terminals are refused',
  ],
  [
    'passes typed text to a terminal, and ends the command on Ctrl-C and Ctrl-D',
    async ({ start }) => {
      const execution = await start('copies', { tty, stdin: true });
      await execution.write('hello\r');
      await shows(execution, 'hello\r\nhello\r\n');
      await execution.write('\u0003');
      await execution.endsWith(130);
      const typed = await start('copies', { tty, stdin: true });
      await typed.write('\u0004');
      await typed.endsWith(0);
    },
    'if terminals are real',
  ],
  [
    'runs a short command in a terminal, and ignores a resize after its end',
    async ({ start }) => {
      const executions = await Promise.all(Array.from({ length: 5 }, () => start('speaks', { tty })));
      for (const execution of executions) {
        await execution.endsWith(7);
        await execution.resize(100, 40);
      }
    },
    'unless terminals are refused',
  ],
  [
    'keeps a terminal open after its runtime is closed',
    async ({ start, runtime, open }) => {
      const execution = await start('shows its terminal', { tty, stdin: true });
      await shows(execution, '23 91\r\n');
      await runtime.close();
      const later = execution.by(await open());
      await later.resize(80, 24);
      await shows(later, '24 80\r\n');
      await later.write('\u0003');
      await later.endsWith(130);
      await later.remove();
    },
    'if terminals are durable',
  ],
];

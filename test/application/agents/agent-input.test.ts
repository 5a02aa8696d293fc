import { expect, test } from 'vitest';
import { AgentInput } from '../../../src/application/agents/agent-input.ts';
import type { OpenExecution } from '../../../src/ports/sandbox-executions.ts';

/** The offset at which the earlier process began the turn. */
const began = 100;
const message = 'fix the tests\n';

/** Returns what the agent gets when this process sends the inputs. `earlier` is what the earlier process has sent in the turn. */
async function given(earlier: string, inputs: readonly (string | null)[]): Promise<{ readonly got: string; readonly offset: number }> {
  let got = '';
  const stdin = new WritableStream<Uint8Array>({ write: (bytes) => void (got += new TextDecoder().decode(bytes)) });
  const handedOver = { bytes: began + earlier.length, isCut: earlier !== '' && !earlier.endsWith('\n') };
  const execution: Pick<OpenExecution, 'stdin' | 'handedOver'> = { stdin, handedOver };
  const input = new AgentInput(execution, began);
  const writer = input.stream.getWriter();
  for (const text of inputs) await (text === null ? input.skipMessage() : writer.write(new TextEncoder().encode(text)));
  return { got, offset: input.offset };
}

test.each([
  ['has nothing of the message, it gets all of it', '', [message, 'next\n'], `${message}next\n`],
  ['has a part of the message, it gets the rest', 'fix the', [message, 'next\n'], ' tests\nnext\n'],
  ['has the message, it does not get it again', message, [message, 'next\n'], 'next\n'],
  ['has a later line, it does not get the message again', `${message}answer\n`, [message, 'next\n'], 'next\n'],
  ['has a part of a later line, it gets the end of that line', `${message}ans`, [message, 'next\n'], '\nnext\n'],
  ['works without a message, it gets what comes', '', [null, 'next\n'], 'next\n'],
  ['works without a message and has a line, it gets what comes', 'answer\n', [null, 'next\n'], 'next\n'],
  ['works without a message and has a part of a line, it gets the end of that line', 'ans', [null, 'next\n'], '\nnext\n'],
])('after a takeover, if the agent %s', async (_, earlier, inputs, expected) => {
  expect(await given(earlier, inputs)).toEqual({ got: expected, offset: began + earlier.length + expected.length });
});

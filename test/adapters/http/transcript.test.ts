import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ToolCallChange } from '../../contracts/agent-script.ts';
import { until } from '../../support/until.ts';
import { conversations, readyConversation } from './support.ts';
import { coderSpec, createWorld, type World } from './world.ts';

let world: World;
/** What the agent does in a turn. */
let calls: readonly (ToolCallChange & { readonly question?: string })[] = [];
const options = [{ optionId: 'yes', name: 'Yes, for `npm`', kind: 'allow_once' as const }];

beforeAll(async () => {
  world = await createWorld({
    specs: [coderSpec],
    script: async (turn) => {
      for (const { question, ...call } of calls) {
        await turn.tool(call);
        if (question !== undefined) await turn.ask({ toolCallId: call.toolCallId, title: question, options });
      }
      await turn.say('the end');
    },
  });
});
afterAll(() => world.close());

/** Returns the transcript of a turn of the agent with the calls. */
async function transcriptOf(format: 'markdown' | 'json', ...made: typeof calls): Promise<unknown> {
  calls = made;
  const id = await readyConversation(world, { permission_policy: 'allow', initial_message: { content: [{ type: 'text', text: 'go' }] } });
  const read = async () => (await world.ann('GET', `${conversations}/${id}/transcript?format=${format}`)).body;
  return await until(read, (body) => JSON.stringify(body).includes('the end'), 60_000);
}

/** Returns what the Markdown has between the messages of the user and the agent. */
async function markdownOf(...made: typeof calls): Promise<string> {
  return String(await transcriptOf('markdown', ...made)).split('> go\n')[1]?.split('\n## Agent')[0] ?? '';
}

const done = { toolCallId: 'call', status: 'completed' } as const;
const allowed = 'allowed (`` Yes, for `npm` ``). Decided by the policy of the conversation: allow.';

test('titles, paths and options of an agent are code in the Markdown transcript, and show each character', async () => {
  const title = 'echo `date`  ``<b>*x*</b>';
  expect(await markdownOf({ ...done, title, paths: ['a_b_.ts', '`c`'], question: '`true`' })).toBe([
    '',
    '- ```echo `date`  ``<b>*x*</b>``` (`a_b_.ts`, `` `c` ``): completed', '',
    `- Permission for \`\` \`true\` \`\`: ${allowed}`, '',
  ].join('\n'));
});

test('a title of several lines is a code block in the Markdown transcript, which ends after its last line', async () => {
  const title = 'cat <<END >a.md\n# One\r\n\n```sh\n  ls\n```\n````\nEND\n';
  const block = ['', '  `````', '  cat <<END >a.md', '  # One', '  ', '  ```sh', '    ls', '  ```', '  ````', '  END', '  `````', ''];
  expect(await markdownOf({ ...done, title, paths: ['a.md'], question: title })).toBe([
    '', '- the text below (`a.md`): completed', ...block, `- Permission for the text below: ${allowed}`, ...block,
  ].join('\n'));
});

const failed = (text: string) => ({ toolCallId: 'call', title: 'npm test', status: 'failed', content: [{ type: 'text', text }] }) as const;

test('the Markdown transcript has the beginning and the end of what a failed call reported, and JSON has all of it', async () => {
  expect(await markdownOf(failed('# not\nfound'))).toBe('\n- `npm test`: failed\n\n  It reported:\n\n  ```\n  # not\n  found\n  ```\n');
  const text = `${'a'.repeat(1000)}${'b'.repeat(70)}${'c'.repeat(1000)}`;
  const note = '[... 70 characters are left out; the transcript as JSON has them ...]';
  expect(await markdownOf(failed(text))).toContain(`  ${'a'.repeat(1000)}\n  ${note}\n  ${'c'.repeat(1000)}\n  \`\`\`\n`);
  expect(await transcriptOf('json', failed(text))).toMatchObject({ items: [{}, { kind: 'tool_call', status: 'failed', failure: text }, {}] });
});

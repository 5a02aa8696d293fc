import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RepositoryDescription } from '../../contracts/git-repository.ts';
import { acpAgentCommand } from '../../doubles/acp-agent/start.ts';
import { acpScript } from '../../doubles/acp-agent/steps.ts';
import { items } from '../../support/client.ts';
import { messageOf, startConversation, answersIn, type ConversationClient } from '../../support/conversation.ts';
import { until } from '../../support/until.ts';
import { createScene, type Scene } from './scene.ts';

/** As JSON, this is more than the pipes to the agent hold: each control character has six bytes. What an agent says has none. */
const large = 'x\u001f\u001f\u001f\u001f\u001f'.repeat(10_000);

const repository: RepositoryDescription = {
  commits: [{
    id: 'first',
    at: 1_600_000_000,
    files: [
      ['.skep/setup.sh', 'echo "installing with ${BASH_VERSION:+bash}"\necho ready >installed.txt\n'],
      ['.skep/microagents/style.md', 'Be brief.\n'],
      ['.skep/microagents/deploy.md', '---\ntriggers: [deploy]\n---\nUse make.\n'],
      ['.skep/microagents/large.md', `---\ntriggers: [large]\n---\n${large}\n`],
    ],
  }, {
    id: 'executable',
    at: 1_600_000_001,
    files: [['.skep/setup.sh', { executable: '#!/usr/bin/env node\nconsole.log("installing with node");\n' }]],
  }],
  branches: { main: 'first', executable: 'executable' },
};

let scene: Scene;
let talk: ConversationClient;

beforeAll(async () => {
  scene = await createScene({
    repository,
    config: (_, folder) => {
      const agent = { protocol: 'acp', command: acpAgentCommand({ sessions: join(folder, 'sessions') }) };
      return { specs: [{ id: 'scripted', command: ['sh', '-c', 'exec sleep infinity'], agent }] };
    },
  });
  talk = await startConversation(() => scene.call, { selected_repository: 'acme/shop', initial_message: messageOf('hello') });
  await talk.ready();
});
afterAll(() => scene?.close());

const dataOf = async (wanted: string): Promise<unknown[]> => (await talk.events()).filter(({ kind }) => kind === wanted).map(({ data }) => data);
const answerTo = async (text: string): Promise<string> => answersIn(await talk.turn(await talk.say(text))).join('');

/** Returns the id and the output of the only execution in the sandbox of the conversation. */
async function readSetup(client: ConversationClient): Promise<{ readonly id: string; readonly output: unknown }> {
  const executions = `/api/v1/sandboxes/${await client.sandboxId()}/executions`;
  const [execution] = items(await scene.call('GET', executions));
  const id = String(execution?.['id']);
  return { id, output: (await scene.call('GET', `${executions}/${id}/output`)).body };
}

test('the setup script runs with bash before the agent starts, and its output can be read as an execution', async () => {
  const { id, output } = await readSetup(talk);
  expect(await dataOf('setup_script')).toEqual([{ execution_id: id, status: 'running' }, { execution_id: id, status: 'succeeded' }]);
  expect(output).toBe('installing with bash\n');
  const steps = (await dataOf('start_step')) as { readonly to: string }[];
  expect(steps.map(({ to }) => to).slice(-4)).toEqual(['RUNNING_SETUP_SCRIPT', 'LISTING_MICROAGENTS', 'STARTING_AGENT', 'READY']);
});

test('an executable setup script runs with the interpreter of its first line', async () => {
  const other = await startConversation(() => scene.call, { selected_repository: 'acme/shop', selected_branch: 'executable' });
  await other.ready();
  expect((await readSetup(other)).output).toBe('installing with node\n');
});

test('the agent gets each matching microagent once, even after kill -9 of the server', async () => {
  expect(answersIn(await talk.turn()).join('')).toMatch(/^heard: <REPOSITORY_INSTRUCTIONS>[^<]*style\.md[^<]*Be brief\.[^<]*<\/REPOSITORY_INSTRUCTIONS>hello$/);
  expect(await answerTo('Deploy it!')).toMatch(/^heard: <EXTRA_INFO>[^<]*deploy\.md[^<]*Use make\.[^<]*<\/EXTRA_INFO>Deploy it!$/);
  await scene.crash();
  expect(await answerTo('deploy again')).toBe('heard: deploy again');
  expect(await answerTo(acpScript({ read: 'installed.txt' }))).toBe('ready\n');
  const [style, deploy] = ['.skep/microagents/style.md', '.skep/microagents/deploy.md'];
  expect(await dataOf('microagents')).toEqual([
    { given: [{ path: style, trigger: null }], left_out: [], left_out_count: 0 },
    { given: [{ path: deploy, trigger: 'deploy' }], left_out: [], left_out_count: 0 },
  ]);
  expect(await dataOf('setup_script')).toHaveLength(2);
});

test('the agent gets a message and its microagents whole, even if the server is killed while it hands them over', async () => {
  // The agent does not read until it is woken.
  await talk.turn(await talk.say(acpScript({ after: [{ run: 'echo $PPID >agent.pid; kill -STOP $PPID' }] })));
  const workspace = join(scene.dataDir, 'sandboxes', await talk.sandboxId(), 'workspace');
  const pid = Number(await until(() => readFile(join(workspace, 'agent.pid'), 'utf8').catch(() => ''), (text) => text.endsWith('\n')));
  await until(() => readFile(`/proc/${pid}/stat`, 'utf8'), (stat) => stat.includes(') T '));
  const message = await talk.say('a large one');
  await talk.event('turn_started', ({ data }) => data['message_id'] === message);
  await scene.crash();
  process.kill(pid, 'SIGCONT');
  const answer = answersIn(await talk.turn(message)).join('');
  expect(answer).toMatch(/^heard: <EXTRA_INFO>[^<]*large\.md[^<]*<\/EXTRA_INFO>a large one$/);
  expect(answer).toContain('x'.repeat(10_000));
});

import { afterAll, expect, test } from 'vitest';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { acpScript } from '../doubles/acp-agent/steps.ts';
import { createClient, items, type Json, object } from '../support/client.ts';
import { messageOf } from '../support/conversation.ts';
import { startServer, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const key = 'a-static-key-for-turns';
const env = { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'error' };
const agent = { protocol: 'acp', command: acpAgentCommand() };
const config = { specs: [{ id: 'agent', command: ['sleep', '100000'], agent }] };
const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] as const;

let server: Server;
afterAll(async () => await server?.close());

test.each(['kill', 'stop'] as const)('work that an agent began by itself continues after a %s of the server', async (end) => {
  server = await startServer({ env, config });
  const call = (method: string, path: string, body?: unknown) => createClient(server.url, key)(method, path, body);
  const path = `/api/v1/app-conversations/${String(object(await call('POST', '/api/v1/app-conversations', {}))['id'])}`;
  const events = async () => items(await call('GET', `${path}/events?limit=100`)) as { kind: string; data: Json }[];
  const dataOf = async (kind: string) => (await events()).filter((event) => event.kind === kind).map(({ data }) => data);
  await until(async () => object(await call('GET', path)), ({ start_status: status }) => status === 'READY');
  const work = [{ say: 'The tests failed. ' }, { ask: { toolCallId: 'fix', title: 'Fix', options } }, { run: 'sleep 0.3' }, { say: ' I fixed it.' }];
  await call('POST', `${path}/messages`, messageOf(acpScript({ say: 'I wait for the tests.' }, { after: work })));
  const [asked] = await until(() => dataOf('permission_requested'), (all) => all.length === 1);
  if (end === 'kill') await server.kill();
  else expect(await server.stop()).toBe(0);
  server = await startServer({ env, config, dataDir: server.dataDir });
  await call('POST', `${path}/permissions/${String(asked?.['permission_id'])}`, { option_id: 'yes' });
  await until(() => dataOf('message_chunk'), (chunks) => chunks.some(({ text }) => String(text).includes('fixed')));
  await call('POST', `${path}/messages`, messageOf('And?'));
  await until(() => dataOf('turn_ended'), (ended) => ended.length === 3);
  const said = (await dataOf('message')).map(({ role, text }) => `${String(role)}: ${String(text)}`);
  expect(said.filter((text) => text.startsWith('agent'))).toEqual([
    'agent: I wait for the tests.', 'agent: The tests failed. ', 'agent: chosen: yes I fixed it.', 'agent: heard: And?',
  ]);
  expect((await dataOf('turn_ended')).map(({ stop_reason: reason }) => reason)).toEqual(['end_turn', 'end_turn', 'end_turn']);
  expect((await dataOf('agent_started')).length).toBe(1);
  await server.close();
});

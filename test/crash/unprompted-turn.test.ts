import { afterAll, expect, test } from 'vitest';
import { acpAgentCommand } from '../doubles/acp-agent/start.ts';
import { type AcpStep, acpScript } from '../doubles/acp-agent/steps.ts';
import { createClient, items, type Json, object } from '../support/client.ts';
import { messageOf } from '../support/conversation.ts';
import { startServer, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const key = 'a-static-key-for-turns';
const env = { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'error' };
const agent = { protocol: 'acp', command: acpAgentCommand() };
const config = { specs: [{ id: 'agent', command: ['sleep', '100000'], agent }] };
const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] as const;

/** Asks for permission for a call, and completes it. */
function asks(toolCallId: string): AcpStep[] {
  return [{ ask: { toolCallId, title: toolCallId, options } }, { tool: { toolCallId, status: 'completed' } }];
}

let server: Server;
afterAll(async () => await server?.close());

test.each(['kill', 'stop'] as const)('work that an agent began by itself continues after a %s of the server', async (end) => {
  server = await startServer({ env, config });
  const call = (method: string, path: string, body?: unknown) => createClient(server.url, key)(method, path, body);
  const path = `/api/v1/app-conversations/${String(object(await call('POST', '/api/v1/app-conversations', {}))['id'])}`;
  const events = async () => items(await call('GET', `${path}/events?limit=100`)) as { kind: string; data: Json }[];
  const dataOf = async (kind: string) => (await events()).filter((event) => event.kind === kind).map(({ data }) => data);
  await until(async () => object(await call('GET', path)), ({ start_status: status }) => status === 'READY');
  const work: AcpStep[] = [{ say: 'The tests failed. ' }, ...asks('fix'), { run: 'sleep 0.3' }, { say: ' I fixed it. ' }, ...asks('push'), { say: ' Done.' }];
  await call('POST', `${path}/messages`, messageOf(acpScript({ say: 'I wait for the tests.' }, { after: work })));
  const allow = async (count: number) => {
    const asked = await until(() => dataOf('permission_requested'), (all) => all.length === count);
    return async () => await call('POST', `${path}/permissions/${String(asked.at(-1)?.['permission_id'])}`, { option_id: 'yes' });
  };
  await (await allow(1))();
  const allowSecond = await allow(2);
  // The message waits until the agent has its answer and is quiet.
  await call('POST', `${path}/messages`, messageOf('And?'));
  if (end === 'kill') await server.kill();
  else expect(await server.stop()).toBe(0);
  server = await startServer({ env, config, dataDir: server.dataDir });
  await allowSecond();
  await until(() => dataOf('turn_ended'), (ended) => ended.length === 3);
  const said = (await dataOf('message')).map(({ role, text }) => `${String(role)}: ${String(text)}`);
  expect(said.filter((text) => text.startsWith('agent'))).toEqual([
    'agent: I wait for the tests.', 'agent: The tests failed. ', 'agent: chosen: yes I fixed it. ', 'agent: chosen: yes Done.', 'agent: heard: And?',
  ]);
  expect((await dataOf('permission_answered')).map(({ option_id: option }) => option)).toEqual(['yes', 'yes']);
  expect((await dataOf('turn_ended')).map(({ stop_reason: reason }) => reason)).toEqual(['end_turn', 'end_turn', 'end_turn']);
  expect((await dataOf('agent_started')).length).toBe(1);
  await server.close();
});

import { expect } from 'vitest';
import { attach } from '../adapters/http/executions-support.ts';
import { type Answer, items, object } from '../support/client.ts';
import { until } from '../support/until.ts';

type Ask = (method: string, template: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>) => Promise<Answer>;

/** Calls every operation of executions. Adds the one that `ask` can't call to `succeeded`. */
export async function callEachOfExecutions(url: string, key: string, ask: Ask, succeeded: Set<string>): Promise<void> {
  const sandboxId = String(object(await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes', {}))['id']);
  const sandbox = `/api/v1/sandboxes/${sandboxId}`;
  await until(async () => object(await ask('GET', '/api/v1/sandboxes/{id}', sandbox)), ({ status }) => status === 'RUNNING');
  const [template, executions] = ['/api/v1/sandboxes/{id}/executions', `${sandbox}/executions`];
  const one = `${template}/{execution_id}`;
  const run = async (body: unknown) => {
    const answer = await ask('POST', template, executions, body);
    expect(answer.status).toBe(201);
    return `${executions}/${String(object(answer)['id'])}`;
  };
  const ended = (path: string) => until(async () => object(await ask('GET', one, path)), ({ status }) => status !== 'running');
  const cat = await run({ shell: 'cat; echo "$GREETING" >&2; exit 3', stdin: true, env: { GREETING: 'hello' } });
  const bytes = { 'Content-Type': 'application/octet-stream' };
  expect((await ask('POST', `${one}/input`, `${cat}/input?close=true`, 'some input', bytes)).status).toBe(204);
  expect((await ask('GET', `${one}/output`, `${cat}/output?follow=true&after=5`)).body).toBe('input');
  expect((await ask('GET', `${one}/output`, `${cat}/output?follow=true&stream=stderr`)).body).toBe('hello\n');
  expect(await ended(cat)).toMatchObject({ exit_code: 3, stdout_bytes: 10 });

  const shell = await run({ command: ['sh', '-c', 'echo ready; exec sleep 1000'] });
  expect((await ask('POST', `${one}/resize`, `${shell}/resize`, { cols: 100, rows: 30 })).status).toBe(204);
  const client = attach(`${url}${shell}/attach`, { 'X-Session-API-Key': key });
  await until(() => client.bytes.stdout.toString(), (text) => text.includes('ready'));
  expect((await ask('POST', `${one}/signal`, `${shell}/signal`, { signal: 'SIGKILL' })).status).toBe(204);
  expect(await client.told(({ status }) => status !== undefined)).toMatchObject({ status: 'exited', exit_code: 137 });
  expect(await client.closed).toBe(1000);
  succeeded.add(`get ${one}/attach`);
  expect(items(await ask('GET', template, executions))).toHaveLength(2);
  expect((await ask('DELETE', one, shell)).status).toBe(204);
  await ask('DELETE', '/api/v1/sandboxes/{id}', sandbox);
}

import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { AgentClient, AgentPermission, AgentSession, AgentTurn, AgentUpdate } from '../../../../src/ports/agent-protocol.ts';
import { recordingClient, type RecordingClient } from '../../../contracts/agent-harness.ts';
import { withTimeout } from '../../../contracts/contract.ts';
import { startAgentProcess, type AgentProcess } from '../../../doubles/acp-agent/start.ts';
import { modelScript, startModel, textOf, type ModelDouble, type ModelReply } from '../../../doubles/model/index.ts';
import { describeWithOpenCode, openCodeEnv } from '../../../support/opencode.ts';

/** Returns the last state of each tool call. */
function calls(updates: readonly AgentUpdate[]) {
  return [...new Map(updates.flatMap((update) => (update.kind === 'tool_call' ? [[update.call.toolCallId, update.call] as const] : []))).values()];
}

const chooses = (kind: string) => async ({ options }: AgentPermission) => options.find((option) => option.kind === kind)?.optionId ?? null;

describeWithOpenCode('ACP with OpenCode and a scripted model', (binary) => {
  const started: AgentProcess[] = [];
  let folder: string;
  let work: string;
  let model: ModelDouble;
  let session: AgentSession;
  let client: RecordingClient;
  let decide: AgentClient['permission'];

  async function open(sessionId: string | null): Promise<void> {
    const env = { ...openCodeEnv({ modelUrl: model.url }), PATH: process.env['PATH'], HOME: join(folder, 'home'), MODEL_API_KEY: 'the key of the model' };
    const agent = startAgentProcess([binary, 'acp'], { cwd: work, env });
    started.push(agent);
    client = recordingClient({ permission: (request, signal) => decide(request, signal) });
    const { streams } = agent;
    session = await withTimeout('a session', createAcpProtocol().open({ streams, workingDir: work, authMethod: null, sessionId, client }, neverAborts));
  }

  async function close(): Promise<void> {
    await session.close();
    await withTimeout('OpenCode ends after the end of its input', started.at(-1)?.gone ?? Promise.resolve());
  }

  function prompt(...replies: readonly ModelReply[]): Promise<AgentTurn> {
    client.updates.length = 0;
    return withTimeout('the turn ends', session.prompt({ content: [{ type: 'text', text: modelScript(...replies) }] }));
  }

  const writes = (name: string, content: string): ModelReply => ({ tool: 'write', arguments: { filePath: join(work, name), content } });
  const contentOf = (name: string) => readFile(join(work, name), 'utf8').catch(() => null);

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'skep-opencode-')));
    work = join(folder, 'work');
    await mkdir(work);
    await mkdir(join(folder, 'home'));
    model = await startModel();
    await open(null);
  });

  afterAll(async () => {
    for (const agent of started) agent.kill();
    await Promise.all(started.map(({ gone }) => gone));
    await model?.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  test('reports the thought, the answer and the token usage of the model', async () => {
    expect(await prompt({ thought: 'hm', text: 'hello from the model' })).toEqual({ stopReason: 'end_turn', reason: null });
    expect(client.updates).toContainEqual(expect.objectContaining({ kind: 'message_chunk', channel: 'thought', text: 'hm' }));
    expect(client.updates.map((update) => (update.kind === 'message_chunk' && update.channel === 'answer' ? update.text : '')).join('')).toBe('hello from the model');
    expect(client.updates).toContainEqual(expect.objectContaining({ kind: 'usage', usedTokens: 100, contextTokens: 100_000 }));
    expect(model.requests[0]?.authorization).toBe('Bearer the key of the model');
  });

  test('edits a file after the permission is given', async () => {
    decide = chooses('allow_once');
    expect((await prompt(writes('allowed.txt', 'one\ntwo\n'), { text: 'written' })).stopReason).toBe('end_turn');
    expect(await contentOf('allowed.txt')).toBe('one\ntwo\n');
    const [call] = calls(client.updates);
    expect(call).toMatchObject({ toolKind: 'edit', status: 'completed', paths: [join(work, 'allowed.txt')] });
    const diff = { type: 'diff', path: join(work, 'allowed.txt'), newText: 'one\ntwo\n' };
    expect(client.updates).toContainEqual({ kind: 'tool_call', call: expect.objectContaining({ content: [expect.objectContaining(diff)] }) });
    expect(client.requests.map(({ toolCallId }) => toolCallId)).toEqual([call?.toolCallId]);
  });

  test('does not edit a file if the permission is denied', async () => {
    decide = chooses('reject_once');
    await prompt(writes('denied.txt', 'one\n'), { text: 'then not' });
    expect(await contentOf('denied.txt')).toBeNull();
    expect(calls(client.updates)).toMatchObject([{ toolKind: 'edit', status: 'failed' }]);
  });

  test('withdraws its permission request when the turn is cancelled', async () => {
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    decide = async (_, signal) => {
      resolve();
      return await new Promise((withdraw) => {
        signal.addEventListener('abort', () => withdraw(null), { once: true });
      });
    };
    const turn = prompt(writes('cancelled.txt', 'one\n'), { text: 'never' });
    await withTimeout('the permission request', asked);
    await session.cancel();
    expect((await turn).stopReason).toBe('cancelled');
    expect(await contentOf('cancelled.txt')).toBeNull();
  });

  test('fails a turn with the error message of the model, and the next turn works', async () => {
    const turn = await prompt({ status: 400, message: 'your account has no credit' });
    expect(turn).toEqual({ stopReason: 'failed', reason: { code: 'agent_error', message: expect.stringContaining('your account has no credit') } });
    expect((await prompt({ text: 'fine again' })).stopReason).toBe('end_turn');
    expect(client.said()).toBe('fine again');
  });

  test('cancels a turn in which the model stalls', async () => {
    const begun = client.next();
    const turn = prompt({ text: 'let me see', stall: true });
    await begun;
    await session.cancel();
    expect((await turn).stopReason).toBe('cancelled');
    expect((await prompt({ text: 'here I am' })).stopReason).toBe('end_turn');
  });

  test('continues its session after a restart', async () => {
    const { id } = session;
    await close();
    await open(id);
    expect([session.id, session.loaded]).toEqual([id, true]);
    expect(client.updates).toEqual([]);
    expect((await prompt({ text: 'as I said' })).stopReason).toBe('end_turn');
    expect(client.said()).toBe('as I said');
    const told = model.requests.at(-1)?.body.messages.filter(({ role }) => role === 'assistant').map(textOf);
    expect(told).toContain('hello from the model');
    await close();
  });
});

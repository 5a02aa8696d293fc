import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AgentRefusal } from '../../../../src/ports/agent-protocol.ts';
import { withTimeout } from '../../../contracts/contract.ts';
import type { AcpStep } from '../../../doubles/acp-agent/steps.ts';
import { openScripted } from './agents.ts';
import { agentByHand } from './by-hand.ts';

const ended = { stopReason: 'end_turn', reason: null };

/** Returns the message as a line of JSON-RPC. */
function line(message: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}

const option = (optionId: string) => ({ optionId, name: 'Yes', kind: 'allow_once' });

describe('Output of an agent', () => {
  const said = vi.fn<(...words: unknown[]) => void>();

  beforeEach(() => {
    said.mockClear();
    for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const) vi.spyOn(console, method).mockImplementation(said);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    expect(said).not.toHaveBeenCalled();
  });

  test.each<readonly [string, string]>([
    ['a line that is no JSON', 'Downloading a model... 50%\n'],
    ['empty lines', '\n\r\n  \n'],
    ['half a line before the next line', '{"jsonrpc":"2.0","method":"session/upd\n'],
    ['control characters', '\u0000\u001b[31m\ufffd\n'],
    ['JSON that is no object', '[1, 2]\n"text"\nnull\n42\n'],
    ['a batch', `[${line({ method: 'session/update', params: {} }).trim()}]\n`],
    ['an object of another protocol', '{"jsonrpc":"1.0","id":1,"result":{}}\n{"hello":"world"}\n'],
    ['a response without a request', line({ id: 4711, result: {} }) + line({ id: 'x', error: { code: 1, message: 'no' } }) + line({ id: null, error: { code: 1, message: 'no' } })],
    ['a notification of an unknown method', line({ method: '_vendor/thing', params: { a: 1 } })],
    ['a message whose method is no string', line({ id: 5, method: 7 })],
    ['an update without parameters', line({ method: 'session/update' })],
    ['an update that is malformed', line({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: 'text' } } })],
    ['the cancellation of an unknown request', line({ method: '$/cancel_request', params: { requestId: 99 } })],
  ])('is ignored: %s', async (_, raw) => {
    const { client, does } = await openScripted({ agent: { preamble: raw } });
    expect(await does({ say: 'a' }, { raw }, { say: 'b' }, { raw, times: 20 }, { say: 'c' })).toEqual(ended);
    expect(client.said()).toBe('abc');
  });

  test('is passed on where it is no message', async () => {
    const { does, otherOutput } = await openScripted({ agent: { preamble: 'Welcome\n{"level":"warn"}\n' } });
    const long = line({ id: 5, method: 'm'.repeat(1001) });
    const raw = `not logged in\n{"jsonrpc":"2.0","method":"sess\n${long}`;
    expect(await does({ say: 'a' }, { raw: line({ method: 'session/update' }) }, { raw })).toEqual(ended);
    expect(otherOutput.filter((text) => text !== '')).toEqual(['Welcome', '{"level":"warn"}', 'not logged in', long.trim()]);
  });

  test('may have many invalid lines if valid messages come in between', async () => {
    const { client, does } = await openScripted();
    const steps = Array.from({ length: 3 }, (): AcpStep[] => [{ raw: 'rubbish\n', times: 1000 }, { say: '.' }]).flat();
    expect(await does(...steps)).toEqual(ended);
    expect(client.said()).toBe('...');
  });

  test('ends the session after too many invalid lines', async () => {
    const { session, client, does } = await openScripted();
    const { stopReason, reason } = await does({ say: 'a' }, { raw: 'Segmentation fault\n', times: 2000 }, { say: 'never' });
    expect(stopReason).toBe('interrupted');
    expect(reason).toEqual({ code: 'agent_output_invalid', maxLines: 1000 });
    expect(await session.closed).toEqual(reason);
    expect(client.said()).toBe('a');
  });

  test('makes open() fail if it has only invalid lines', async () => {
    const refusal = await withTimeout('the refusal', openScripted({ agent: { behaviour: 'babbles' } }).catch((error: unknown) => error));
    expect(refusal).toBeInstanceOf(AgentRefusal);
    expect(refusal).toMatchObject({ reason: { code: 'agent_output_invalid' } });
  });

  test('ends the session if a line is longer than 16 MiB', async () => {
    const { does } = await openScripted();
    const { stopReason, reason } = await does({ raw: 'x'.repeat(10_000), times: 1700 });
    expect(stopReason).toBe('interrupted');
    expect(reason).toEqual({ code: 'agent_line_too_long', maxBytes: 16 * 2 ** 20 });
  });

  test('does not block the server with escape sequences that never end', async () => {
    const { client, does } = await openScripted();
    const begun = performance.now();
    expect(await does({ say: `a${'\u001b]8;;'.repeat(60_000)}` })).toEqual(ended);
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect(client.said()).toBe(`a${'8;;'.repeat(60_000)}`);
  });

  test('may have lines of 3 MB', async () => {
    const { client, does } = await openScripted();
    expect(await does({ flood: 3, bytes: 3_000_000 })).toEqual(ended);
    expect(client.said().length).toBe(9_000_003);
  });

  test('may end with half a line if the agent crashes', async () => {
    const { client, does } = await openScripted();
    expect((await does({ say: 'a' }, { raw: '{"jsonrpc":"2.0","meth' }, { crash: true })).stopReason).toBe('interrupted');
    expect(client.said()).toBe('a');
  });

  test('is ignored on stderr', async () => {
    const { client, does } = await openScripted();
    expect(await does({ stderr: 'warning: x\n' }, { say: 'a' })).toEqual(ended);
    expect(client.said()).toBe('a');
  });

  test('gets the error -32601 if it asks for a file or a terminal', async () => {
    const { client, does } = await openScripted();
    const request = { method: 'fs/read_text_file', params: { sessionId: 's', path: '/etc/passwd' } };
    await does({ request }, { request: { method: 'terminal/create', params: { sessionId: 's', command: 'ls' } } });
    expect(client.said().match(/"code":-32601/gu)).toHaveLength(2);
  });

  test.each<readonly [string, unknown]>([
    ['malformed', 'all'],
    ['with one id for two options', [option('yes'), option('yes')]],
    ['with a very long id', [option('y'.repeat(1001))]],
    ['with very many options', Array.from({ length: 51 }, (_, index) => option(`${index}`))],
  ])('gets the error -32602 if it is a permission request %s', async (_, options) => {
    const { client, does } = await openScripted();
    const params = { sessionId: 's', toolCall: { toolCallId: 'call' }, options };
    expect(await does({ request: { method: 'session/request_permission', params } })).toEqual(ended);
    expect(client.said()).toContain('"code":-32602');
    expect(client.requests).toEqual([]);
  });

  test('is refused if the id of its session is very long', async () => {
    const opening = agentByHand({}, { session: { result: { sessionId: 's'.repeat(1001) } } });
    await expect(opening).rejects.toMatchObject({ reason: { code: 'malformed_answer' } });
  });

  test('is left out of the reason if it offers very many ways to authenticate', async () => {
    const authMethods = Array.from({ length: 21 }, (_, index) => ({ id: `way-${index}`, name: 'A_KEY' }));
    const opening = agentByHand({}, { initialized: { authMethods }, session: { error: { code: -32_000, message: 'no' } } });
    await expect(opening).rejects.toMatchObject({ reason: { code: 'agent_authentication_required', methods: [], variables: [] } });
  });
});

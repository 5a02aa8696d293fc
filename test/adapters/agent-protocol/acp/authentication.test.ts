import { expect, test } from 'vitest';
import type { Reason } from '../../../../src/domain/reason.ts';
import { AgentRefusal } from '../../../../src/ports/agent-protocol.ts';
import { openScripted, type ScriptedOptions } from './agents.ts';

const agent = { behaviour: 'wants_key' } as const;

async function refusalOf(options: ScriptedOptions): Promise<Reason> {
  const error: unknown = await openScripted(options).catch((error: unknown) => error);
  if (!(error instanceof AgentRefusal)) throw new Error('it was not refused', { cause: error });
  return error.reason;
}

test('open() fails with the variables that may be missing if the agent asks for authentication', async () => {
  expect(await refusalOf({ agent })).toEqual({
    code: 'agent_authentication_required',
    methodId: null,
    message: expect.stringContaining('Authentication required'),
    variables: ['MODEL_API_KEY'],
    methods: [
      { id: 'browser', name: 'Log in with a browser', description: expect.stringMatching(/^Run agent login, then wait [a-z ]{173}\.\.\.$/u) },
      { id: 'model-api-key', name: 'Use MODEL_API_KEY' },
    ],
  });
});

test('open() authenticates with `authMethod` before it opens a session', async () => {
  const { client, does } = await openScripted({ agent, authMethod: 'model-api-key', env: { MODEL_API_KEY: 'k' } });
  await does({ say: 'in' });
  expect(client.said()).toBe('in');
});

test('open() fails with the message of the agent if the authentication fails', async () => {
  expect(await refusalOf({ agent, authMethod: 'model-api-key' })).toMatchObject({
    code: 'agent_authentication_refused',
    methodId: 'model-api-key',
    message: expect.stringContaining('MODEL_API_KEY is not set'),
    variables: ['MODEL_API_KEY'],
  });
});

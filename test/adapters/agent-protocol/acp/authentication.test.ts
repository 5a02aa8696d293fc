import { expect, test } from 'vitest';
import { AgentRefusal } from '../../../../src/ports/agent-protocol.ts';
import { openScripted, type ScriptedOptions } from './agents.ts';

const agent = { behaviour: 'wants_key' } as const;

async function refusalOf(options: ScriptedOptions): Promise<string> {
  const error: unknown = await openScripted(options).catch((error: unknown) => error);
  if (!(error instanceof AgentRefusal)) throw new Error('it was not refused', { cause: error });
  return error.message;
}

test('an agent that asks for authentication is refused in words that say what is probably missing', async () => {
  const words = await refusalOf({ agent });
  expect(words).toContain('Authentication required');
  expect(words).toContain('name MODEL_API_KEY among the agent\'s secrets');
  expect(words).toContain('auth_method');
  expect(words).toContain('model-api-key (Use MODEL_API_KEY)');
});

test('an agent that is told how to authenticate does so before it opens a session', async () => {
  const { client, does } = await openScripted({ agent, authMethod: 'model-api-key', env: { MODEL_API_KEY: 'k' } });
  await does({ say: 'in' });
  expect(client.said()).toBe('in');
});

test('an agent that can not authenticate so is refused with what it says', async () => {
  expect(await refusalOf({ agent, authMethod: 'model-api-key' })).toMatch(/refuses to authenticate by model-api-key: MODEL_API_KEY is not set; name MODEL_API_KEY/u);
});

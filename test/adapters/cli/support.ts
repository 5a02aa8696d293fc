import { PassThrough } from 'node:stream';
import { createClient, type SkepClient } from '../../../src/client/index.ts';
import type { MemoryAgentScript } from '../../doubles/memory/index.ts';
import { Chat } from '../../../src/adapters/cli/chat.ts';
import { until } from '../../support/until.ts';
import { stall } from '../http/support.ts';
import { coderSpec, createWorld, plainSpec, type World } from '../http/world.ts';

export const escape = '\u001b';
const options = [
  { optionId: 'yes', name: 'Yes, once', kind: 'allow_once' as const },
  { optionId: 'no', name: `No\n  3  Everything${escape}[2J`, kind: 'reject_once' as const },
];

/** Does what the message names, and repeats any other message. */
const script: MemoryAgentScript = async (turn) => {
  const text = turn.message.content.at(-1)?.text ?? '';
  switch (text) {
    case 'ask':
      await turn.say(`chosen: ${await turn.ask({ toolCallId: 'call-1', title: `Write\n${escape}[31ma file`, options })}`);
      return;
    case 'parts':
      await turn.say('hm', { channel: 'thought' });
      for (const part of ['one ', 'two ', 'three']) await turn.say(part);
      await turn.tool({ toolCallId: 'call-2', title: 'Read a file', status: 'completed', paths: ['/workspace/a.txt'] });
      await turn.say('done');
      return;
    case 'steer':
      await turn.say(`a${escape}[2Jb${escape}]0;title\u0007c\u009b31md\u202ee\rf`);
      return;
    case 'stall':
      return await stall(turn);
    case 'fail':
      throw new Error('the model is away');
    case 'crash':
      return await turn.crash();
    default:
      await turn.say(`heard: ${text}`);
  }
};

/** Starts a deployment with an agent that runs the script. The spec `plain` has no agent, and `broken` never gets ready. */
export async function createTalkingWorld(): Promise<World> {
  const broken = { ...coderSpec, id: 'broken', ready: { probe: { kind: 'tcp' as const, port: 1 }, withinMs: 1 } };
  return await createWorld({ specs: [coderSpec, plainSpec, broken], script });
}

export function apiOf(world: World, key: string = world.keys.ann): SkepClient {
  return createClient({ url: world.url, key, retryForMs: 2000 });
}

export interface TalkOptions {
  readonly message?: string;
  readonly interactive?: boolean;
  readonly colored?: boolean;
  readonly json?: boolean;
}

/** Starts a chat whose input the test writes, and whose output it reads. */
export function talk(api: SkepClient, id: string, { message, interactive = false, colored = false, json = false }: TalkOptions = {}) {
  const [input, screen] = [new PassThrough(), new PassThrough()];
  let shown = '';
  screen.setEncoding('utf8').on('data', (text: string) => (shown += text));
  const chat = async () =>
    await new Chat(api, await api.conversations.get(id), { input, output: screen, interactive, colored, json }).run(message ?? null);
  const done = chat();
  // The test awaits it later.
  done.catch(() => {});
  return {
    type: (line: string): void => void input.write(`${line}\n`),
    key: (keys: string): void => void input.write(keys),
    end: (): void => void input.end(),
    shown: () => shown,
    /** Waits until the text is on the screen. */
    sees: async (words: string): Promise<void> => void (await until(() => shown, (all) => all.includes(words), 60_000)),
    /** Its exit code. */
    done,
  };
}

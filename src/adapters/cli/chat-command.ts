import { Readable } from 'node:stream';
import { type Command, Option } from 'commander';
import type { SkepClient } from '../../client/index.ts';
import { Chat } from './chat.ts';
import { clientOf, CommandError, type Common, notice, subcommand } from './console.ts';

export function addChat(program: Command, finish: (exitCode: number) => void): void {
  subcommand(program, 'chat', 'talk with a coding agent in a new conversation, or continue one')
    .argument('[repository]', 'the repository to work on, for example owner/name')
    .option('--conversation <id>', 'continue this conversation')
    .option('--branch <branch>', 'a branch other than the default one')
    .option('--spec <id>', 'a sandbox spec other than the default one')
    .option('--title <title>', 'the title of the conversation')
    .addOption(new Option('--permissions <policy>', "the answer to the agent's requests for permission").choices(['allow', 'ask', 'deny']))
    .option('--message <text>', 'the first message')
    .option('--once', 'read no input, and exit when the message is answered; a new conversation needs --message')
    .action(async (repository: string | undefined, options: ChatOptions) => finish(await chat(repository, options)));
}

interface ChatOptions extends Common {
  readonly conversation?: string;
  readonly branch?: string;
  readonly spec?: string;
  readonly title?: string;
  readonly permissions?: 'allow' | 'ask' | 'deny';
  readonly message?: string;
  readonly once?: boolean;
}

async function chat(repository: string | undefined, options: ChatOptions): Promise<number> {
  const client = clientOf(options);
  const { branch, spec, title, permissions, once = false, json = false, message = null } = options;
  if (options.conversation !== undefined) {
    const chosen = { 'a repository': repository, '--branch': branch, '--spec': spec, '--title': title, '--permissions': permissions };
    const given = Object.entries(chosen).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    if (given.length > 0) {
      throw new CommandError(`Leave out ${given.join(', ')} with --conversation: it continues a conversation as it was started.`);
    }
  }
  if (once && message === null && options.conversation === undefined) throw new CommandError('--once needs --message.');
  if (message === '') throw new CommandError('The message must not be empty.');
  if (options.conversation === undefined) await requireAgent(client, spec);
  const body = { selected_repository: repository, selected_branch: branch, sandbox_spec_id: spec, title, permission_policy: permissions };
  const { conversations } = client;
  const conversation = options.conversation === undefined ? await conversations.start(body) : await conversations.get(options.conversation);
  notice(`conversation ${conversation.id}, sandbox ${conversation.state.sandbox_id ?? '-'}`);
  const { stdin, stdout } = process;
  return await new Chat(client, conversation, {
    input: once ? Readable.from([]) : stdin,
    output: stdout,
    interactive: !once && !json && stdin.isTTY && stdout.isTTY,
    colored: stdout.isTTY && stdout.hasColors(),
    json,
  }).run(message, !once || options.conversation === undefined);
}

/** Throws before anything is started if the spec has no agent to answer in a conversation. */
async function requireAgent(client: SkepClient, id: string | undefined): Promise<void> {
  const { items } = await client.request('GET /api/v1/sandbox-specs/search');
  const spec = id === undefined ? items[0] : items.find((one) => one.id === id);
  if (spec?.agent !== null) return;
  const others = items.filter(({ agent }) => agent !== null).map((one) => one.id);
  const advice = others.length === 0 ? 'No spec of the server names one.' : `Choose one of these specs with --spec: ${others.join(', ')}.`;
  throw new CommandError(`The spec ${spec.id} names no agent, so nobody can answer. ${advice}`);
}

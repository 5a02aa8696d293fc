import { Readable } from 'node:stream';
import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { ClientError, conversation, pageOf, safeLine, sandbox, sandboxSpec, type SkepClient } from '../../client/client.ts';
import { followEvents } from '../../client/events.ts';
import { addPair, addText, toDuration, toPositiveNumber, toSize } from './arguments.ts';
import { Chat } from './chat.ts';
import { clientOf, conversationTable, notice, print, sandboxTable, stopSignal } from './console.ts';
import { Transcript } from './transcript.ts';

const conversations = '/api/v1/app-conversations';
const conversationPath = (id: string): string => `${conversations}/${encodeURIComponent(id)}`;
const sandboxes = '/api/v1/sandboxes';
const sandboxPath = (id: string): string => `${sandboxes}/${encodeURIComponent(id)}`;

/** The options of every command of the client. */
interface Common {
  /** The server to talk to. Default: the one of this machine's settings. */
  readonly url?: string;
  readonly json?: boolean;
}

/** Adds the commands that talk to a server, which may be on another machine. `finish` sets the exit code of the program. */
export function addClientCommands(program: Command, finish: (exitCode: number) => void): void {
  subcommand(program, 'chat', 'talk with a coding agent in a new conversation, or continue one')
    .argument('[repository]', 'the repository to work on, for example owner/name')
    .option('--conversation <id>', 'continue this conversation')
    .option('--branch <branch>', 'a branch other than the default one')
    .option('--spec <id>', 'a sandbox spec other than the default one')
    .option('--title <title>', 'the title of the conversation')
    .addOption(new Option('--permissions <policy>', 'the answer to what the agent wants to do').choices(['allow', 'ask', 'deny']))
    .option('--message <text>', 'the first message')
    .option('--once', 'read no input: leave when the message is answered')
    .action(async (repository: string | undefined, options: ChatOptions) => finish(await chat(repository, options)));
  addConversations(program.command('conversations').description('list, follow and end conversations'));
  addSandboxes(program.command('sandboxes').description('list, start, follow, pause, resume, adopt and delete sandboxes'));
}

function addConversations(parent: Command): void {
  subcommand(parent, 'list', 'list the newest', { isDefault: true }).action(async (options: Common) => {
    const page = await clientOf(options).get(conversations, pageOf(conversation));
    print(options, page, conversationTable(page.items));
    noteOlder(page);
  });
  subcommand(parent, 'get <id>', 'show one').action(async (id: string, options: Common) => {
    const found = await clientOf(options).get(conversationPath(id), conversation);
    print(options, found, conversationTable([found]));
  });
  subcommand(parent, 'follow <id>', 'show what is said and done in one').action(followConversation);
  subcommand(parent, 'end <id>', 'end one; its sandbox is deleted too if no other conversation uses it')
    .action(async (id: string, options: Common) => {
      await clientOf(options).delete(conversationPath(id));
      print(options, { id, deleted: true }, '');
      notice(`The conversation ${id} is ended.`);
    });
}

function addSandboxes(parent: Command): void {
  subcommand(parent, 'list', 'list the newest', { isDefault: true })
    .option('--metadata <key=value>', 'only those with this metadata; may be repeated', addPair)
    .action(async (options: Common & { readonly metadata?: Readonly<Record<string, string>> }) => {
      const pairs = Object.entries(options.metadata ?? {}).map((pair) => ['metadata__eq', pair.join('=')]);
      const page = await clientOf(options).get(`${sandboxes}/search?${new URLSearchParams(pairs).toString()}`, pageOf(sandbox));
      print(options, page, sandboxTable(page.items));
      noteOlder(page);
    });
  subcommand(parent, 'get <id>', 'show one')
    .action(async (id: string, options: Common) => showSandbox(options, await clientOf(options).get(sandboxPath(id), sandbox)));
  subcommand(parent, 'start [spec]', 'start one, from the default spec unless one is named')
    .option('--env <name=value>', 'a variable of its command; may be repeated', addPair)
    .option('--metadata <key=value>', 'a text to find it again by; may be repeated', addPair)
    .option('--timeout <duration>', 'the time until it is deleted, for example 1h', toDuration)
    .option('--secret <name>', "a variable of the server's environment that the spec allows; may be repeated", addText)
    .option('--cpus <number>', 'a number of CPUs, at most that of the spec', toPositiveNumber)
    .option('--memory <size>', 'its memory, at most that of the spec, for example 512MiB', toSize)
    .action(async (spec: string | undefined, options: StartOptions) =>
      showSandbox(options, await clientOf(options).post(sandboxes, startBody(spec, options), sandbox)));
  subcommand(parent, 'follow', 'show status changes as they happen').action(followSandboxes);
  subcommand(parent, 'pause <id>', 'pause one')
    .addOption(new Option('--kind <kind>', 'freeze keeps its processes, stop frees their memory').choices(['freeze', 'stop']))
    .action(async (id: string, { kind, ...options }: Common & { readonly kind?: string }) =>
      showSandbox(options, await clientOf(options).post(`${sandboxPath(id)}/pause`, { pause_kind: kind }, sandbox)));
  subcommand(parent, 'resume <id>', 'resume one')
    .action(async (id: string, options: Common) =>
      showSandbox(options, await clientOf(options).post(`${sandboxPath(id)}/resume`, undefined, sandbox)));
  subcommand(parent, 'adopt <id>', 'give one in quarantine to its owner; needs the key of an administrator')
    .option('--user <user>', 'an owner other than the one that the runtime knows')
    .option('--spec <id>', 'a spec other than the one that the runtime knows')
    .action(async (id: string, { user, spec, ...options }: Common & { readonly user?: string; readonly spec?: string }) =>
      showSandbox(options, await clientOf(options).post(`${sandboxPath(id)}/adopt`, { user_id: user, sandbox_spec_id: spec }, sandbox)));
  subcommand(parent, 'delete <id>', 'delete one, with its files').action(async (id: string, options: Common) => {
    await clientOf(options).delete(sandboxPath(id));
    print(options, { id, deleted: true }, '');
    notice(`The sandbox ${id} is deleted, with its files.`);
  });
}

interface StartOptions extends Common {
  readonly env?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Milliseconds. */
  readonly timeout?: number;
  readonly secret?: readonly string[];
  readonly cpus?: number;
  /** Bytes. */
  readonly memory?: number;
}

/** Returns the body of a start. JSON leaves out what is undefined. */
function startBody(spec: string | undefined, { env, metadata, timeout, secret, cpus, memory }: StartOptions) {
  const resources = cpus === undefined && memory === undefined ? undefined : { cpus, memory_bytes: memory };
  const timeoutSeconds = timeout === undefined ? undefined : Math.ceil(timeout / 1000);
  return { sandbox_spec_id: spec, env, metadata, timeout_seconds: timeoutSeconds, resources, secrets: secret };
}

function subcommand(parent: Command, usage: string, description: string, options: { readonly isDefault?: boolean } = {}): Command {
  return parent
    .command(usage, options)
    .description(description)
    .option('--url <url>', "the server's address; by default SKEP_PUBLIC_URL, or SKEP_HOST and SKEP_PORT")
    .option('--json', 'print JSON as the API has it; what follows events prints one line for each');
}

interface ChatOptions extends Common {
  readonly conversation?: string;
  readonly branch?: string;
  readonly spec?: string;
  readonly title?: string;
  readonly permissions?: string;
  readonly message?: string;
  readonly once?: boolean;
}

/** Starts a conversation on the repository, or continues one, and talks with its agent. */
async function chat(repository: string | undefined, options: ChatOptions): Promise<number> {
  const client = clientOf(options);
  if (options.conversation !== undefined && repository !== undefined) {
    throw new ClientError('A conversation keeps its repository: leave out the repository, or --conversation.');
  }
  const { branch, spec, title, permissions, once = false, json = false, message = null } = options;
  if (options.conversation === undefined) await demandAgent(client, spec);
  // JSON leaves out what is undefined.
  const body = { selected_repository: repository, selected_branch: branch, sandbox_spec_id: spec, title, permission_policy: permissions };
  const { id, sandbox_id } = options.conversation === undefined
    ? await client.post(conversations, body, conversation)
    : await client.get(conversationPath(options.conversation), conversation);
  notice(`conversation ${id}, sandbox ${sandbox_id ?? '-'}`);
  const { stdin, stdout } = process;
  return await new Chat(client, id, {
    input: once ? Readable.from([]) : stdin,
    output: stdout,
    interactive: !once && !json && stdin.isTTY && stdout.isTTY,
    colored: stdout.isTTY && stdout.hasColors(),
    json,
  }).run(message);
}

/** Throws if nobody would answer in a conversation of the spec, before anything is started for it. */
async function demandAgent(client: SkepClient, id: string | undefined): Promise<void> {
  const { items } = await client.get('/api/v1/sandbox-specs/search', pageOf(sandboxSpec));
  const spec = id === undefined ? items[0] : items.find((one) => one.id === id);
  if (spec?.agent !== null) return;
  const others = items.filter(({ agent }) => agent !== null).map((one) => one.id);
  const advice = others.length === 0 ? 'No spec of the server has one.' : `Choose one that has, with --spec: ${others.join(', ')}.`;
  throw new ClientError(`The spec ${spec.id} names no agent, so nobody would answer. ${advice}`);
}

/** Prints the events of a conversation from the beginning, until it or the process ends. */
async function followConversation(id: string, options: Common): Promise<void> {
  const { stdout } = process;
  const colored = stdout.isTTY && stdout.hasColors();
  const transcript = new Transcript({ write: (text) => stdout.write(text), colored, json: options.json === true });
  const stream = `${conversationPath(id)}/events/stream`;
  for await (const event of followEvents(clientOf(options), stream, { signal: stopSignal(), onLost: notice })) transcript.show(event);
}

/** Prints the status changes of all sandboxes as they happen, until the process ends. */
async function followSandboxes(options: Common): Promise<void> {
  const path = '/api/v1/events/stream?kinds=sandbox_moved';
  for await (const event of followEvents(clientOf(options), path, { signal: stopSignal(), onLost: notice })) {
    if (event.kind !== 'sandbox_moved') continue;
    const { at, sandbox_id, reason, data } = event;
    const tier = data.pause_kind === null ? '' : ` (${data.pause_kind})`;
    const line = `${at} ${sandbox_id ?? '-'} ${data.from ?? 'new'} -> ${data.to ?? 'gone'}${tier} ${reason ?? ''}`;
    process.stdout.write(`${options.json === true ? JSON.stringify(event) : safeLine(line)}\n`);
  }
}

function showSandbox(options: Common, found: z.output<typeof sandbox>): void {
  print(options, found, sandboxTable([found]));
}

function noteOlder({ next_page_id }: { readonly next_page_id: string | null }): void {
  if (next_page_id !== null) notice('There are older ones.');
}

import { Readable } from 'node:stream';
import { type Command, Option } from 'commander';
import type { api, SkepClient } from '../../client/index.ts';
import { addPair, addStartOptions, startBody, type StartOptions } from './arguments.ts';
import { addChanges } from './changes.ts';
import { Chat } from './chat.ts';
import {
  clientOf, CommandError, type Common, conversationTable, notice, print, recordText, sandboxTable, subcommand, urlHelp,
} from './console.ts';
import { addCopy } from './copy.ts';
import { executeInSandbox } from './exec-command.ts';
import { forwardPort, linkTo, parsePorts } from './port-forwarding.ts';
import { addRepositories } from './repositories.ts';
import { showLogs } from './show-logs.ts';
import { followConversation, followSandboxes, showTranscript } from './transcript.ts';

/** Adds the commands that talk to a server, also on another machine. `finish` sets the exit code of the program. */
export function addClientCommands(program: Command, finish: (exitCode: number) => void): void {
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
  subcommand(program, 'open <sandbox> [port]', 'print a link to a port of a sandbox, by number or name, for a browser')
    .addOption(new Option('--expires <seconds>', 'how many seconds the link can be used').argParser(Number))
    .action(async (id: string, port: string | undefined, { expires, ...options }: Common & { readonly expires?: number }) => {
      const link = await linkTo(clientOf(options), id, port, expires);
      print(options, link, `${link.url}\n`);
    });
  subcommand(program, 'forward <sandbox> <ports>', 'serve a port of a sandbox, by number or name, on this machine; for example 8080:8000')
    .action(async (id: string, text: string, options: Common) => {
      const ports = parsePorts(text);
      if (ports === null) throw new CommandError('Give the ports as LOCAL:REMOTE, for example 8080:8000 or 8080:WEB.');
      await forwardPort(clientOf(options), id, ports);
    });
  addExecutions(program, finish);
  addCopy(program, urlHelp);
  program.command('logs').description('show what the command of a sandbox wrote')
    .argument('<sandbox>', 'the id of the sandbox, which may be paused')
    .option('-f, --follow', 'continue until the sandbox stops')
    .option('--tail <bytes>', 'only the last bytes of the log, at most this many', Number)
    .option('--url <url>', urlHelp)
    .action(showLogs);
  addChanges(
    subcommand(program, 'changes <conversation>', 'show the changes of a conversation'),
    subcommand(program, 'publish <conversation>', 'push the changes of a conversation to a branch'),
  );
  addRepositories(program.command('repositories').description('search repositories, and list their branches'));
  addConversations(program.command('conversations').description('list, show, follow, archive and delete conversations'));
  addSandboxes(program.command('sandboxes').description('list, start, follow, pause, resume, adopt and delete sandboxes'));
}

/** Adds the commands that run a program in a sandbox, as `docker exec` does. Options after the command belong to the command. */
function addExecutions(program: Command, finish: (exitCode: number) => void): void {
  program.enablePositionalOptions();
  withExecOptions(program.command('exec').description('run a command in a sandbox, and exit with its exit code'))
    .argument('<sandbox>', 'the id of a running sandbox')
    .argument('<command...>', 'the command and its arguments')
    .passThroughOptions()
    .option('-i, --interactive', 'send the standard input to the command')
    .option('-t, --tty', 'run it in a terminal')
    .option('-d, --detach', 'run it in the background, and print the id of its execution')
    .action(async (sandboxId: string, command: string[], given: ExecOptions) => finish(await execute(sandboxId, command, given)));
  withExecOptions(program.command('shell').description('open a shell in a sandbox'))
    .argument('<sandbox>', 'the id of a running sandbox')
    .action(async (sandboxId: string, given: ExecOptions) =>
      finish(await execute(sandboxId, shell, { ...given, interactive: true, tty: true })));
}

function withExecOptions(command: Command): Command {
  return command
    .option('-e, --env <variable>', 'a variable as NAME=VALUE; may be repeated', addPair)
    .option('-w, --workdir <path>', 'an absolute path in the sandbox')
    .option('--url <url>', urlHelp);
}

const shell = ['/bin/sh', '-c', 'if command -v bash >/dev/null; then exec bash -l; else exec /bin/sh -l; fi'];

interface ExecOptions {
  readonly url?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly workdir?: string;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly detach?: boolean;
}

async function execute(sandboxId: string, command: readonly string[], options: ExecOptions): Promise<number> {
  const { env = {}, workdir, interactive = false, tty = false, detach = false } = options;
  if (detach && (interactive || tty)) throw new CommandError('Use -d without -i and -t: a command in the background gets no input.');
  // All arguments after the sandbox are passed on unchanged, except a first `--`.
  const own = command[0] === '--' ? command.slice(1) : command;
  const client = clientOf(options);
  if (detach) {
    const sandbox = await client.sandboxes.get(sandboxId);
    const { id } = await sandbox.executions.start(own, { env, working_dir: workdir });
    process.stdout.write(`${id}\n`);
    return 0;
  }
  return await executeInSandbox(client, sandboxId, own, { interactive, tty, env, workingDir: workdir }, process);
}

function addConversations(parent: Command): void {
  addReadCommands(parent, {
    list: (client) => client.request('GET /api/v1/app-conversations'),
    get: (client, id) => client.request('GET /api/v1/app-conversations/{id}', { path: { id } }),
    table: conversationTable,
  });
  subcommand(parent, 'follow <id>', 'show its messages and events as they come')
    .action(async (id: string, options: Common) => await followConversation(clientOf(options), id, options));
  subcommand(parent, 'show <id>', 'print its transcript, as Markdown or JSON')
    .action(async (id: string, options: Common) => await showTranscript(clientOf(options), id, options));
  subcommand(parent, 'rename <id> <title>', 'change the title of one').action(async (id: string, title: string, options: Common) =>
    await update(options, id, { title }));
  subcommand(parent, 'archive <id>', 'end its agent, delete its sandbox, and keep its transcript')
    .action(async (id: string, options: Common) => await update(options, id, { archived: true }));
  subcommand(parent, 'end <id>', 'delete one, with its sandbox if no other conversation uses it')
    .action(async (id: string, options: Common) => {
      await clientOf(options).request('DELETE /api/v1/app-conversations/{id}', { path: { id } });
      showDeleted(options, id, `The conversation ${id} is deleted.`);
    });
}

function addSandboxes(parent: Command): void {
  addReadCommands(parent, {
    list: (client, metadata) => client.request('GET /api/v1/sandboxes/search', { query: { metadata__eq: metadata } }),
    get: (client, id) => client.request('GET /api/v1/sandboxes/{id}', { path: { id } }),
    table: sandboxTable,
  }).option('--metadata <key=value>', 'only those with this metadata; may be repeated', addPair);
  addStartOptions(subcommand(parent, 'start [spec]', 'start one, by default from the default spec'))
    .action(async (spec: string | undefined, options: Common & StartOptions) =>
      showSandbox(options, await clientOf(options).request('POST /api/v1/sandboxes', { body: startBody(spec, options) })));
  subcommand(parent, 'follow', 'show status changes as they happen')
    .action(async (options: Common) => await followSandboxes(clientOf(options), options));
  subcommand(parent, 'pause <id>', 'pause one')
    .addOption(new Option('--kind <kind>', 'freeze keeps its processes, stop frees their memory').choices(['freeze', 'stop']))
    .action(async (id: string, { kind, ...options }: Common & { readonly kind?: 'freeze' | 'stop' }) => {
      const body = { pause_kind: kind };
      showSandbox(options, await clientOf(options).request('POST /api/v1/sandboxes/{id}/pause', { path: { id }, body }));
    });
  subcommand(parent, 'resume <id>', 'resume one')
    .action(async (id: string, options: Common) =>
      showSandbox(options, await clientOf(options).request('POST /api/v1/sandboxes/{id}/resume', { path: { id } })));
  subcommand(parent, 'adopt <id>', 'give one in quarantine to its owner; needs the key of an administrator')
    .option('--user <user>', 'its owner; by default the owner that the runtime knows')
    .option('--spec <id>', 'its spec; by default the spec that the runtime knows')
    .action(async (id: string, { user, spec, ...options }: Common & { readonly user?: string; readonly spec?: string }) => {
      const body = { user_id: user, sandbox_spec_id: spec };
      showSandbox(options, await clientOf(options).request('POST /api/v1/sandboxes/{id}/adopt', { path: { id }, body }));
    });
  subcommand(parent, 'delete <id>', 'delete one, with its files')
    .action(async (id: string, options: Common) => {
      await clientOf(options).request('DELETE /api/v1/sandboxes/{id}', { path: { id } });
      showDeleted(options, id, `The sandbox ${id} is deleted, with its files.`);
    });
}

interface ListOptions extends Common {
  readonly metadata?: Readonly<Record<string, string>>;
}

interface Page<T> {
  readonly items: readonly T[];
  readonly next_page_id: string | null;
}

/** How the resources of a collection are read and printed. */
interface ReadCommands<T> {
  readonly list: (client: SkepClient, metadata: readonly string[]) => Promise<Page<T>>;
  readonly get: (client: SkepClient, id: string) => Promise<T>;
  readonly table: (items: readonly T[]) => string;
}

/** Adds the commands that print the newest resources of a collection, and one resource. Returns the first command. */
function addReadCommands<T extends object>(parent: Command, { list, get, table }: ReadCommands<T>): Command {
  const listing = subcommand(parent, 'list', 'list the newest', { isDefault: true }).action(async (options: ListOptions) => {
    const page = await list(clientOf(options), Object.entries(options.metadata ?? {}).map((pair) => pair.join('=')));
    print(options, page, table(page.items));
    if (page.next_page_id !== null) notice('There are older ones. Only the newest are shown.');
  });
  subcommand(parent, 'get <id>', 'show one').action(async (id: string, options: Common) => {
    const found = await get(clientOf(options), id);
    print(options, found, recordText(found));
  });
  return listing;
}

function showDeleted(options: Common, id: string, text: string): void {
  print(options, { id, deleted: true }, '');
  notice(text);
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
  if (options.conversation !== undefined && repository !== undefined) {
    throw new CommandError('Give either a repository or --conversation: a conversation keeps its repository.');
  }
  const { branch, spec, title, permissions, once = false, json = false, message = null } = options;
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
  }).run(message);
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

async function update(options: Common, id: string, body: api.AppConversationUpdateRequest): Promise<void> {
  const found = await clientOf(options).request('PATCH /api/v1/app-conversations/{id}', { path: { id }, body });
  print(options, found, conversationTable([found]));
}

function showSandbox(options: Common, found: api.Sandbox): void {
  print(options, found, sandboxTable([found]));
}

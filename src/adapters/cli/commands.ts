import { type Command, Option } from 'commander';
import type { api, SkepClient } from '../../client/index.ts';
import { addPair, addStartOptions, startBody, type StartOptions, toSeconds } from './arguments.ts';
import { addChanges } from './changes.ts';
import { addChat } from './chat-command.ts';
import { clientOf, CommandError, type Common, notice, olderNotice, print, stoppable, subcommand } from './console.ts';
import { conversationTable, recordText, sandboxTable, table } from './tables.ts';
import { addCopy } from './copy.ts';
import { addExecutions } from './exec-command.ts';
import { addLogs } from './logs.ts';
import { forwardPort, linkTo, parsePorts } from './port-forwarding.ts';
import { safeLine } from './safe-text.ts';
import { followConversation, followSandboxes, showTranscript } from './event-printer.ts';

/** Adds the commands that talk to a server, also on another machine. `finish` sets the exit code of the program. */
export function addClientCommands(program: Command, finish: (exitCode: number) => void): void {
  addChat(program, finish);
  subcommand(program, 'open <sandbox> [port]', 'print a link to a port of a sandbox, by number or name, for a browser')
    .option('--expires <duration>', 'how long the link can be used, for example 1h; a number alone is in seconds', toSeconds)
    .action(async (id: string, port: string | undefined, { expires, ...options }: Common & { readonly expires?: number }) => {
      const link = await linkTo(clientOf(options), id, port, expires);
      print(options, link, `${link.url}\n`);
    });
  subcommand(program, 'forward <sandbox> <ports>', 'serve a port of a sandbox, by number or name, on this machine; for example 8080:8000')
    .action(async (id: string, text: string, options: Common) => {
      const ports = parsePorts(text);
      if (ports === null) throw new CommandError('Give the ports as LOCAL:REMOTE, for example 8080:8000 or 8080:WEB.');
      await forwardPort(clientOf(options), id, ports, options);
    });
  addExecutions(program, finish);
  addCopy(program);
  addLogs(program);
  addChanges(
    subcommand(program, 'changes <conversation>', 'show the changes of a conversation'),
    subcommand(program, 'publish <conversation>', 'push the changes of a conversation to a branch'),
  );
  const repositories = program.command('repositories').description('search repositories, and list their branches');
  subcommand(repositories, 'search <query>', 'find repositories by a part of their name').action(searchRepositories);
  subcommand(repositories, 'branches <name>', 'list the branches of one').action(listBranches);
  addConversations(program.command('conversations').description('list, show, follow, cancel, archive and delete conversations'));
  addSandboxes(program.command('sandboxes').description('list, start, follow, pause, resume, adopt and delete sandboxes'));
}

function addConversations(parent: Command): void {
  addReadCommands(parent, {
    list: (client) => client.request('GET /api/v1/app-conversations'),
    get: (client, id) => client.request('GET /api/v1/app-conversations/{id}', { path: { id } }),
    table: conversationTable,
  });
  subcommand(parent, 'follow <id>', 'show its messages and events as they come')
    .action(async (id: string, options: Common) => await stoppable((signal) => followConversation(clientOf(options), id, options, signal)));
  subcommand(parent, 'show <id>', 'print its transcript, as Markdown or JSON')
    .action(async (id: string, options: Common) => await stoppable((signal) => showTranscript(clientOf(options), id, options, signal)));
  subcommand(parent, 'rename <id> <title>', 'change the title of one').action(rename);
  subcommand(parent, 'cancel <id> [message]', 'stop its turn; or only that of a message, by its id, and withdraw the message if it waits')
    .action(async (id: string, messageId: string | undefined, options: Common) => {
      const body = { message_id: messageId };
      const found = await clientOf(options).request('POST /api/v1/app-conversations/{id}/cancel', { path: { id }, body });
      print(options, found, conversationTable([found]));
    });
  const archiving = 'end its agent, keep its transcript and changes, and delete its sandbox if no other conversation uses it';
  subcommand(parent, 'archive <id>', `${archiving}, unless you started the sandbox yourself`).action(archive);
  subcommand(parent, 'end <id>', 'delete one, with its sandbox if no other conversation uses it')
    .action(async (id: string, options: Common) => {
      await clientOf(options).request('DELETE /api/v1/app-conversations/{id}', { path: { id } });
      showDeleted(options, id, `The conversation ${id} is deleted.`);
    });
}

function addSandboxes(parent: Command): void {
  addReadCommands(parent, {
    list: (client, { metadata = {} }: Pick<StartOptions, 'metadata'>) => {
      const pairs = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
      return client.request('GET /api/v1/sandboxes/search', { query: { metadata__eq: pairs } });
    },
    get: (client, id) => client.request('GET /api/v1/sandboxes/{id}', { path: { id } }),
    table: sandboxTable,
  }).option('--metadata <key=value>', 'only those with this metadata; may be repeated', addPair);
  addStartOptions(subcommand(parent, 'start [spec]', 'start one, by default from the default spec'))
    .action(async (spec: string | undefined, options: Common & StartOptions) =>
      showSandbox(options, await clientOf(options).request('POST /api/v1/sandboxes', { body: startBody(spec, options) })));
  subcommand(parent, 'follow', 'show status changes as they happen')
    .action(async (options: Common) => await stoppable((signal) => followSandboxes(clientOf(options), options, signal)));
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
      showDeleted(options, id, `The sandbox ${id} is deleted.`);
    });
}

/** How the resources of a collection are read and printed. */
interface ReadCommands<T, Filter> {
  readonly list: (client: SkepClient, filter: Filter) => Promise<api.Page<T>>;
  readonly get: (client: SkepClient, id: string) => Promise<T>;
  readonly table: (items: readonly T[]) => string;
}

/**
 * Adds the commands that print the newest resources of a collection, and one resource. Returns the first command, for the options of its
 * filter.
 */
function addReadCommands<T extends object, Filter>(parent: Command, { list, get, table }: ReadCommands<T, Filter>): Command {
  // The list is the default, so it also gets the names of commands that do not exist.
  const listing = subcommand(parent, 'list', 'list the newest', { isDefault: true }).allowExcessArguments();
  listing.action(async (options: Common & Filter, { args: [unknown] }: Command) => {
    if (unknown !== undefined) parent.error(`error: unknown command '${unknown}'`);
    const page = await list(clientOf(options), options);
    print(options, page, table(page.items));
    olderNotice(page);
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

async function rename(id: string, title: string, options: Common): Promise<void> {
  const found = await clientOf(options).request('PATCH /api/v1/app-conversations/{id}', { path: { id }, body: { title } });
  print(options, found, conversationTable([found]));
}

/** Archives the conversation. Fails if its changes can't be kept. */
async function archive(id: string, options: Common): Promise<void> {
  const conversation = await clientOf(options).conversations.get(id);
  const found = await conversation.archive();
  print(options, found, conversationTable([found]));
  if (found.status_reason?.code === 'changes_not_kept') throw new CommandError(safeLine(found.status_detail ?? ''));
}

function showSandbox(options: Common, found: api.Sandbox): void {
  print(options, found, sandboxTable([found]));
}

async function searchRepositories(query: string, options: Common): Promise<void> {
  const page = await clientOf(options).request('GET /api/v1/repositories/search', { query: { query } });
  print(options, page, table(['NAME', 'PROVIDER'], page.items.map(({ name, git_provider }) => [name, git_provider])));
  for (const { git_provider, detail } of page.failures) notice(`The repositories of ${git_provider} are missing. ${detail}`);
  if (page.next_page_id !== null) notice('There may be more. Search for a longer part of the name.');
}

async function listBranches(name: string, options: Common): Promise<void> {
  const input = { path: { repository_name: name } };
  const items: api.Branch[] = [];
  for await (const branch of clientOf(options).items('GET /api/v1/repositories/{repository_name}/branches', input)) items.push(branch);
  const rows = items.map(({ name, commit, is_default }) => [name, commit, is_default ? 'yes' : 'no']);
  print(options, { items, next_page_id: null }, table(['NAME', 'COMMIT', 'DEFAULT'], rows));
}

import { type Command, Option } from 'commander';
import type { ChatOptions } from './conversation-commands.ts';

interface Where { readonly url?: string }

/** Sets the exit code of the program. */
type Finish = (exitCode: number) => void;

const loadConversations = async () => await import('./conversation-commands.ts');
const loadSandboxes = async () => await import('./sandbox-commands.ts');

/** Adds the commands that talk to a server, which may be on another machine. The code of a command is loaded when it runs. */
export function addClientCommands(program: Command, finish: Finish): void {
  subcommand(program, 'chat', 'talk with a coding agent in a new conversation, or continue one')
    .argument('[repository]', 'the repository to work on, for example owner/name')
    .option('--conversation <id>', 'continue this conversation')
    .option('--branch <branch>', 'a branch other than the default one')
    .option('--spec <id>', 'a sandbox spec other than the default one')
    .option('--title <title>', 'the title of the conversation')
    .addOption(new Option('--permissions <policy>', 'the answer to what the agent wants to do').choices(['allow', 'ask', 'deny']))
    .option('--message <text>', 'the first message')
    .option('--once', 'read no input: leave when the message is answered')
    .action(async (repository: string | undefined, options: ChatOptions) =>
      finish(await (await loadConversations()).chat(repository, options)));
  addConversations(program.command('conversations').description('list, follow and end conversations'), finish);
  addSandboxes(program.command('sandboxes').description('list, follow, pause, resume and delete sandboxes'), finish);
}

function addConversations(conversations: Command, finish: Finish): void {
  subcommand(conversations, 'list', 'list the newest', { isDefault: true })
    .action(async ({ url }: Where) => finish(await (await loadConversations()).listConversations(url)));
  subcommand(conversations, 'follow', 'show what is said and done in one')
    .argument('<id>')
    .action(async (id: string, { url }: Where) => finish(await (await loadConversations()).followConversation(url, id)));
  subcommand(conversations, 'end', 'end one; its sandbox is deleted too if no other conversation uses it')
    .argument('<id>')
    .action(async (id: string, { url }: Where) => finish(await (await loadConversations()).endConversation(url, id)));
}

function addSandboxes(sandboxes: Command, finish: Finish): void {
  subcommand(sandboxes, 'list', 'list the newest', { isDefault: true })
    .action(async ({ url }: Where) => finish(await (await loadSandboxes()).listSandboxes(url)));
  subcommand(sandboxes, 'follow', 'show status changes as they happen')
    .action(async ({ url }: Where) => finish(await (await loadSandboxes()).followSandboxes(url)));
  subcommand(sandboxes, 'pause', 'pause one')
    .argument('<id>')
    .addOption(new Option('--kind <kind>', 'freeze keeps its processes, stop frees their memory').choices(['freeze', 'stop']))
    .action(async (id: string, { url, kind }: Where & { readonly kind?: string }) =>
      finish(await (await loadSandboxes()).moveSandbox(url, id, 'pause', kind)));
  subcommand(sandboxes, 'resume', 'resume one')
    .argument('<id>')
    .action(async (id: string, { url }: Where) => finish(await (await loadSandboxes()).moveSandbox(url, id, 'resume')));
  subcommand(sandboxes, 'delete', 'delete one, with its files')
    .argument('<id>')
    .action(async (id: string, { url }: Where) => finish(await (await loadSandboxes()).deleteSandbox(url, id)));
}

function subcommand(parent: Command, name: string, description: string, options: { readonly isDefault?: boolean } = {}): Command {
  return parent
    .command(name, options)
    .description(description)
    .option('--url <url>', "the server's address; by default SKEP_PUBLIC_URL, or SKEP_HOST and SKEP_PORT");
}

import { type Command, Option } from 'commander';
import type { ChatOptions, PauseOptions, Where } from './commands.ts';

/** Sets the exit code of the program. */
type Finish = (exitCode: number) => void;

const load = async () => await import('./commands.ts');

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
    .action(async (repository: string | undefined, options: ChatOptions) => finish(await (await load()).chat(repository, options)));
  addConversations(program.command('conversations').description('list, follow and end conversations'), finish);
  addSandboxes(program.command('sandboxes').description('list, follow, pause, resume and delete sandboxes'), finish);
}

function addConversations(conversations: Command, finish: Finish): void {
  subcommand(conversations, 'list', 'list the newest', { isDefault: true })
    .action(async (where: Where) => finish(await (await load()).listConversations(where)));
  subcommand(conversations, 'follow <id>', 'show what is said and done in one')
    .action(async (id: string, where: Where) => finish(await (await load()).followConversation(id, where)));
  subcommand(conversations, 'end <id>', 'end one; its sandbox is deleted too if no other conversation uses it')
    .action(async (id: string, where: Where) => finish(await (await load()).endConversation(id, where)));
}

function addSandboxes(sandboxes: Command, finish: Finish): void {
  subcommand(sandboxes, 'list', 'list the newest', { isDefault: true })
    .action(async (where: Where) => finish(await (await load()).listSandboxes(where)));
  subcommand(sandboxes, 'follow', 'show status changes as they happen')
    .action(async (where: Where) => finish(await (await load()).followSandboxes(where)));
  subcommand(sandboxes, 'pause <id>', 'pause one')
    .addOption(new Option('--kind <kind>', 'freeze keeps its processes, stop frees their memory').choices(['freeze', 'stop']))
    .action(async (id: string, options: PauseOptions) => finish(await (await load()).moveSandbox('pause', id, options)));
  subcommand(sandboxes, 'resume <id>', 'resume one')
    .action(async (id: string, where: Where) => finish(await (await load()).moveSandbox('resume', id, where)));
  subcommand(sandboxes, 'delete <id>', 'delete one, with its files')
    .action(async (id: string, where: Where) => finish(await (await load()).deleteSandbox(id, where)));
}

function subcommand(parent: Command, usage: string, description: string, options: { readonly isDefault?: boolean } = {}): Command {
  return parent
    .command(usage, options)
    .description(description)
    .option('--url <url>', "the server's address; by default SKEP_PUBLIC_URL, or SKEP_HOST and SKEP_PORT");
}

import { Option, type Command } from 'commander';
import type { ChatOptions } from './conversation-commands.ts';

interface Where {
  readonly url?: string;
}

const url = () => new Option('--url <url>', "the server's address; otherwise it follows from SKEP_PUBLIC_URL, or SKEP_HOST and SKEP_PORT");

const loadConversations = async () => await import('./conversation-commands.ts');
const loadSandboxes = async () => await import('./sandbox-commands.ts');

/** The commands that talk with a server, which may be on another machine. A command loads what it needs. */
export function addClientCommands(program: Command, finish: (exitCode: number) => void): void {
  program
    .command('chat')
    .description('talk with a coding agent: starts a conversation, or goes on with one')
    .argument('[repository]', 'the repository to work on, for example owner/name')
    .option('--conversation <id>', 'go on with this one')
    .option('--branch <branch>', 'its branch, where it is not the default one')
    .option('--spec <id>', 'the sandbox spec, where it is not the default one')
    .option('--title <title>', 'what the conversation is called')
    .addOption(new Option('--permissions <policy>', 'what becomes of what the agent asks leave for').choices(['allow', 'ask', 'deny']))
    .option('--message <text>', 'the first message')
    .option('--once', 'read no input: leave when the message is answered')
    .addOption(url())
    .action(async (repository: string | undefined, options: ChatOptions) => {
      const { chat } = await import('./conversation-commands.ts');
      finish(await chat(process.env, repository, options));
    });
  addConversations(program.command('conversations').description('list, follow and end conversations'), finish);
  addSandboxes(program.command('sandboxes').description('list, follow, pause, resume and delete sandboxes'), finish);
}

function addConversations(conversations: Command, finish: (exitCode: number) => void): void {
  conversations
    .command('list', { isDefault: true })
    .description('list the newest')
    .addOption(url())
    .action(async ({ url }: Where) => finish(await (await loadConversations()).listConversations(process.env, url)));
  conversations
    .command('follow')
    .description('show what is said and done in one')
    .argument('<id>')
    .addOption(url())
    .action(async (id: string, { url }: Where) => finish(await (await loadConversations()).followConversation(process.env, url, id)));
  conversations
    .command('end')
    .description('end one; its sandbox goes too if no other uses it')
    .argument('<id>')
    .addOption(url())
    .action(async (id: string, { url }: Where) => finish(await (await loadConversations()).endConversation(process.env, url, id)));
}

function addSandboxes(sandboxes: Command, finish: (exitCode: number) => void): void {
  sandboxes
    .command('list', { isDefault: true })
    .description('list the newest')
    .addOption(url())
    .action(async ({ url }: Where) => finish(await (await loadSandboxes()).listSandboxes(process.env, url)));
  sandboxes
    .command('follow')
    .description('show their changes as they come')
    .addOption(url())
    .action(async ({ url }: Where) => finish(await (await loadSandboxes()).followSandboxes(process.env, url)));
  sandboxes
    .command('pause')
    .description('let one rest')
    .argument('<id>')
    .addOption(new Option('--kind <kind>', 'freeze keeps its processes, stop frees their memory').choices(['freeze', 'stop']))
    .addOption(url())
    .action(async (id: string, { url, kind }: Where & { readonly kind?: string }) => finish(await (await loadSandboxes()).moveSandbox(process.env, url, id, 'pause', kind)));
  sandboxes
    .command('resume')
    .description('let one go on')
    .argument('<id>')
    .addOption(url())
    .action(async (id: string, { url }: Where) => finish(await (await loadSandboxes()).moveSandbox(process.env, url, id, 'resume')));
  sandboxes
    .command('delete')
    .description('delete one, with its files')
    .argument('<id>')
    .addOption(url())
    .action(async (id: string, { url }: Where) => finish(await (await loadSandboxes()).deleteSandbox(process.env, url, id)));
}

import { Command, CommanderError, Option } from 'commander';
import { addClientCommands } from '../../adapters/cli/commands.ts';
import { toDuration } from '../../adapters/cli/arguments.ts';
import { exitOnOutputError, type JsonOption, localUrl, print, Stopped } from '../../adapters/cli/console.ts';
import { packageVersion } from '../../adapters/shared/package-version.ts';
import { commandName } from '../../client/command-name.ts';
import { keyAccesses } from '../../domain/principal.ts';
import { keyFormats } from '../../domain/api-key.ts';
import type { DashboardLinkOptions } from './dashboard-link.ts';
import { explain } from './explain-error.ts';
import type { CreateKeyOptions } from './key-commands.ts';

const { env } = process;

/** Adds a command whose result scripts read. */
const jsonCommand = (parent: Command, usage: string, description: string): Command =>
  parent.command(usage).description(description).option('--json', 'print JSON');

/** Runs the program with the arguments of the process. Returns its exit code. Each command's code is loaded when it runs. */
export async function main(argv: readonly string[]): Promise<number> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', exitOnOutputError);
  let exitCode = 0;
  const finish = (code: number): void => void (exitCode = code);
  const program = new Command('skep')
    .description('A self-hosted control plane for software-engineering agents')
    .version(packageVersion())
    .exitOverride()
    .showHelpAfterError()
    .addHelpText('after', '\nSettings come from the environment (SKEP_*) and from the file that SKEP_CONFIG names.');
  addServerCommands(program, finish);
  addClientCommands(program, finish);
  try {
    await program.parseAsync(argv);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError || error instanceof Stopped) return error.exitCode;
    process.stderr.write(`skep: ${explain(error)}\n`);
    return 1;
  }
}

/** Adds the commands that work on this machine, with the settings of its server. */
function addServerCommands(program: Command, finish: (code: number) => void): void {
  program
    .command('serve')
    .description('run the server')
    .action(async () => finish(await (await import('./serve.ts')).serve(env)));
  jsonCommand(program, 'dashboard', 'print a login link for the dashboard, which works once within ten minutes; the server can be running')
    .option('--user <user>', 'the user that logs in', 'default')
    .addOption(new Option('--access <access>', 'what the user can do').choices(keyAccesses).default('admin'))
    .action(async (options: DashboardLinkOptions) => finish(await (await import('./dashboard-link.ts')).printDashboardLink(env, options)));
  addKeyCommands(program.command('keys').description('manage API keys; the server can be running'), finish);
  jsonCommand(program, 'backup <file>', 'copy the store into a new file; the server can be running')
    .action(async (file: string, options: JsonOption) => finish(await (await import('./backup-commands.ts')).backup(env, file, options)));
  jsonCommand(program, 'restore <file>', `replace the store by a file of \`${commandName} backup\`; the server must be stopped`)
    .action(async (file: string, options: JsonOption) => finish(await (await import('./backup-commands.ts')).restore(env, file, options)));
  jsonCommand(program, 'doctor', 'show the configuration, check every part, and say how to fix problems')
    .action(async (options: JsonOption) => finish(await (await import('./doctor.ts')).doctor(env, options)));
  jsonCommand(program, 'pull [specs...]', "pull the images of the sandbox specs, by default of all, that Docker's engine does not have")
    .action(async (specs: string[], options: JsonOption) => finish(await (await import('./pull-images.ts')).pull(env, specs, options)));
  jsonCommand(program, 'health', 'check whether the server of these settings answers')
    .action(async (options: JsonOption) => finish(await health(options)));
}

/** Checks that this machine's server answers. Returns 0 if so, for the health check of a container. */
async function health(options: JsonOption): Promise<number> {
  const { readConfig } = await import('../config/read-config.ts');
  const { host, port } = readConfig(env);
  const url = `${localUrl(host, port)}/health`;
  try {
    const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    print(options, { url, ok, status }, '');
    if (ok) return 0;
    process.stderr.write(`skep: ${url} returned the status ${status}.\n`);
  } catch {
    print(options, { url, ok: false, status: null }, '');
    process.stderr.write(`skep: ${url} does not answer; start the server: ${commandName} serve\n`);
  }
  return 1;
}

function addKeyCommands(keys: Command, finish: (code: number) => void): void {
  jsonCommand(keys, 'create <name>', 'create a key and print it; it is not shown again')
    .option('--user <user>', 'the owner of everything that the key creates', 'default')
    .option('--expires <duration>', 'the time until it expires, for example 30d', toDuration)
    .addOption(new Option('--access <access>', 'what the key can do').choices(keyAccesses).default('full'))
    .addOption(new Option('--format <format>', "the form of the key; E2B's clients accept only `e2b`").choices(keyFormats).default('skep'))
    .option('--repositories <patterns>', 'the repositories that the key can list, clone and publish to, for example acme/shop,group/**',
      (text: string) => text.split(',').map((pattern) => pattern.trim()))
    .action(async (name: string, options: Omit<CreateKeyOptions, 'name'>) =>
      finish(await (await import('./key-commands.ts')).createKey(env, { name, ...options })));
  jsonCommand(keys, 'list', 'list the keys, without the keys themselves')
    .action(async (options: JsonOption) => finish(await (await import('./key-commands.ts')).listKeys(env, options)));
  jsonCommand(keys, 'revoke <name-or-id>', 'revoke a key, at once')
    .action(async (key: string, options: JsonOption) => finish(await (await import('./key-commands.ts')).revokeKey(env, key, options)));
}

import { Command, CommanderError, Option } from 'commander';
import { addClientCommands } from '../../adapters/cli/commands.ts';
import { toDuration } from '../../adapters/cli/arguments.ts';
import { exitOnOutputError, type JsonOption } from '../../adapters/cli/console.ts';
import { packageVersion } from '../../adapters/shared/package-version.ts';
import { commandName } from '../../client/command-name.ts';
import { keyAccesses } from '../../domain/principal.ts';
import { keyFormats } from '../../domain/api-key.ts';
import type { DashboardLinkOptions } from './dashboard-link.ts';
import { explain } from './explain-error.ts';
import type { CreateKeyOptions } from './key-commands.ts';

const { env } = process;

/** An option of every command whose result scripts read. */
const jsonOption = ['--json', 'print JSON'] as const;

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
    if (error instanceof CommanderError) return error.exitCode;
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
  program
    .command('dashboard')
    .description('print a login link for the dashboard, which works once within ten minutes; the server can be running')
    .option('--user <user>', 'the user that logs in', 'default')
    .addOption(new Option('--access <access>', 'what the user can do').choices(keyAccesses).default('admin'))
    .option(...jsonOption)
    .action(async (options: DashboardLinkOptions) => finish(await (await import('./dashboard-link.ts')).printDashboardLink(env, options)));
  addKeyCommands(program.command('keys').description('manage API keys; the server can be running'), finish);
  program
    .command('backup')
    .description('copy the store into a new file; the server can be running')
    .argument('<file>', 'a file that does not exist yet')
    .option(...jsonOption)
    .action(async (file: string, options: JsonOption) => finish(await (await import('./backup-commands.ts')).backup(env, file, options)));
  program
    .command('restore')
    .description('replace the store by a backup; the server must be stopped')
    .argument('<file>', `a file that \`${commandName} backup\` made`)
    .option(...jsonOption)
    .action(async (file: string, options: JsonOption) => finish(await (await import('./backup-commands.ts')).restore(env, file, options)));
  program
    .command('doctor')
    .description('show the configuration, check every part, and say how to fix problems')
    .option(...jsonOption)
    .action(async (options: JsonOption) => finish(await (await import('./doctor.ts')).doctor(env, options)));
  program
    .command('pull')
    .description("pull the images of the sandbox specs that Docker's engine does not have")
    .argument('[specs...]', 'ids of specs; by default all')
    .option(...jsonOption)
    .action(async (specs: string[], options: JsonOption) => finish(await (await import('./pull-images.ts')).pull(env, specs, options)));
  program
    .command('health')
    .description('check whether the server of these settings answers')
    .option(...jsonOption)
    .action(async (options: JsonOption) => finish(await health(options)));
}

/** Checks that this machine's server answers. Returns 0 if so, for the health check of a container. */
async function health(options: JsonOption): Promise<number> {
  const [{ localUrl, print }, { readConfig }] = await Promise.all([
    import('../../adapters/cli/console.ts'), import('../config/read-config.ts'),
  ]);
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
  keys
    .command('create')
    .description('create a key and print it; it is not shown again')
    .argument('<name>', 'the name of the key')
    .option('--user <user>', 'the owner of everything that the key creates', 'default')
    .option('--expires <duration>', 'the time until it expires, for example 30d', toDuration)
    .addOption(new Option('--access <access>', 'what the key can do').choices(keyAccesses).default('full'))
    .addOption(new Option('--format <format>', "the form of the key; E2B's clients accept only `e2b`").choices(keyFormats).default('skep'))
    .option('--repositories <patterns>', 'the repositories that the key can list and clone, for example acme/shop,group/**',
      (text: string) => text.split(',').map((pattern) => pattern.trim()))
    .option(...jsonOption)
    .action(async (name: string, options: Omit<CreateKeyOptions, 'name'>) =>
      finish(await (await import('./key-commands.ts')).createKey(env, { name, ...options })));
  keys
    .command('list')
    .description('list the keys, without the keys themselves')
    .option(...jsonOption)
    .action(async (options: JsonOption) => finish(await (await import('./key-commands.ts')).listKeys(env, options)));
  keys
    .command('revoke <name-or-id>')
    .description('revoke a key, at once')
    .option(...jsonOption)
    .action(async (key: string, options: JsonOption) => finish(await (await import('./key-commands.ts')).revokeKey(env, key, options)));
}

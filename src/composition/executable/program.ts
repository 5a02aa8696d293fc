import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { addClientCommands } from '../../adapters/cli/client-commands.ts';
import { keyAccesses, type KeyAccess } from '../../domain/principal.ts';
import { parseDuration } from '../config/field-schemas.ts';
import { explain } from './explain-error.ts';
import { packageVersion } from './package-info.ts';

const { env } = process;

/** Runs the program with the arguments of the process. Returns its exit code. The code of a command is loaded when it runs. */
export async function main(argv: readonly string[]): Promise<number> {
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

/** The commands that work on this machine, with the settings of its server. */
function addServerCommands(program: Command, finish: (code: number) => void): void {
  program
    .command('serve')
    .description('run the server')
    .action(async () => finish(await (await import('./serve.ts')).serve(env)));
  addKeyCommands(program.command('keys').description('manage API keys; works while the server runs'), finish);
  program
    .command('doctor')
    .description('show what is configured, what answers, and how to mend what does not')
    .action(async () => finish(await (await import('./doctor.ts')).doctor(env)));
  program
    .command('pull')
    .description("pull the images that the sandbox specs need and Docker's engine lacks")
    .argument('[specs...]', 'ids of specs; by default all')
    .action(async (specs: string[]) => finish(await (await import('./pull-images.ts')).pull(env, specs)));
  program
    .command('health')
    .description('check whether the server of these settings answers')
    .action(async () => finish(await health()));
}

/** Asks the server of these settings whether it answers. Returns 0 if it does, for the health check of a container. */
async function health(): Promise<number> {
  const [{ localUrl }, { loadConfig }] = await Promise.all([import('../../adapters/cli/console.ts'), import('../config/load.ts')]);
  const { host, port } = loadConfig(env);
  const url = `${localUrl(host, port)}/health`;
  try {
    const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    if (ok) return 0;
    process.stderr.write(`skep: ${url} answers ${status}.\n`);
  } catch {
    process.stderr.write(`skep: ${url} does not answer; start the server: skep serve\n`);
  }
  return 1;
}

function addKeyCommands(keys: Command, finish: (code: number) => void): void {
  keys
    .command('create')
    .description('make a key and print it, once')
    .argument('<name>', 'the name of the key')
    .option('--user <user>', 'the owner of what is created with it', 'default')
    .option('--expires <duration>', 'the time until it expires, for example 30d', toDuration)
    .addOption(new Option('--access <access>', 'what it may do').choices(keyAccesses).default('full'))
    .action(async (name: string, options: { user: string; expires?: number; access: KeyAccess }) =>
      finish(await (await import('./keys.ts')).createKey(env, { name, ...options })));
  keys
    .command('list')
    .description('list the keys, without the keys themselves')
    .action(async () => finish(await (await import('./keys.ts')).listKeys(env)));
  keys
    .command('revoke <name-or-id>')
    .description('revoke a key, at once')
    .action(async (key: string) => finish(await (await import('./keys.ts')).revokeKey(env, key)));
}

function toDuration(text: string): number {
  const ms = parseDuration(text);
  if (ms === null) throw new InvalidArgumentError('It takes a duration, for example 12h or 30d.');
  return ms;
}

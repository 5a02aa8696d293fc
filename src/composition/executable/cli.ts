import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { keyAccesses, type KeyAccess } from '../../domain/principal.ts';
import { addClientCommands } from '../../adapters/cli/client-commands.ts';
import { parseDuration } from '../config/field-schemas.ts';
import { explain } from './explain-error.ts';
import { packageVersion } from './package-info.ts';

/** Runs the executable with the arguments of the process; answers with its exit code. A command loads what it needs. */
export async function main(argv: readonly string[]): Promise<number> {
  let exitCode = 0;
  const program = new Command('skep')
    .description('A self-hosted control plane for software-engineering agents')
    .version(packageVersion())
    .exitOverride()
    .showHelpAfterError()
    .addHelpText('after', '\nSettings come from the environment (SKEP_*) and from the file that SKEP_CONFIG names.');

  program
    .command('serve')
    .description('run the server')
    .action(async () => {
      const { serve } = await import('./serve.ts');
      exitCode = await serve(process.env);
    });

  const keys = program.command('keys').description('manage API keys; works while the server runs');
  keys
    .command('create')
    .description('make a key and print it, once')
    .argument('<name>', 'what the key is called')
    .option('--user <user>', 'who owns what is created with it', 'default')
    .option('--expires <duration>', 'for how long it holds, for example 30d', toDuration)
    .addOption(new Option('--access <access>', 'what it may do').choices(keyAccesses).default('full'))
    .action(async (name: string, options: { user: string; expires?: number; access: KeyAccess }) => {
      const { createKey } = await import('./keys.ts');
      exitCode = await createKey(process.env, { name, ...options });
    });
  keys
    .command('list')
    .description('list the keys, without the keys themselves')
    .action(async () => {
      const { listKeys } = await import('./keys.ts');
      exitCode = await listKeys(process.env);
    });
  keys
    .command('revoke')
    .description('make a key worthless, at once')
    .argument('<name-or-id>')
    .action(async (key: string) => {
      const { revokeKey } = await import('./keys.ts');
      exitCode = await revokeKey(process.env, key);
    });

  program
    .command('doctor')
    .description('say what is configured, what answers, and how to mend what does not')
    .action(async () => {
      const { doctor } = await import('./doctor.ts');
      exitCode = await doctor(process.env);
    });

  program
    .command('pull')
    .description("pull the images that the sandbox specs need and Docker's engine lacks")
    .argument('[specs...]', 'ids of specs; all of them where none is named')
    .action(async (specs: string[]) => {
      const { pull } = await import('./pull-images.ts');
      exitCode = await pull(process.env, specs);
    });

  program
    .command('health')
    .description('ask the server of these settings whether it answers')
    .action(async () => {
      const { health } = await import('./health.ts');
      exitCode = await health(process.env);
    });

  addClientCommands(program, (code) => (exitCode = code));

  try {
    await program.parseAsync(argv);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    process.stderr.write(`skep: ${explain(error)}\n`);
    return 1;
  }
}

function toDuration(text: string): number {
  const ms = parseDuration(text);
  if (ms === null) throw new InvalidArgumentError('It takes a duration, for example 12h or 30d.');
  return ms;
}

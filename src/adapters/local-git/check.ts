import { opendir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isFailure } from '../../domain/failure.ts';
import type { CheckResult } from '../../ports/check.ts';
import { gitEnvironment } from './git-environment.ts';
import { exitFailure } from './git-exit.ts';
import { runGit } from './git-process.ts';
import type { ResolvedOptions } from './options.ts';

/** Is git there, and can the root be read? */
export async function checkLocalGit(options: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  try {
    const version = await gitVersion(options, signal);
    await (await opendir(options.root)).close();
    return { ok: true, detail: `git ${version}; the root folder can be read` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: error.message };
    return { ok: false, detail: 'the root folder does not exist or can not be read; create it, or configure another' };
  }
}

async function gitVersion({ gitBinary }: ResolvedOptions, signal: AbortSignal): Promise<string> {
  const folder = tmpdir();
  const command = {
    binary: gitBinary,
    args: ['--version'],
    folder,
    environment: gitEnvironment(folder, folder),
    maxOutputBytes: 4096,
  };
  let output = '';
  const exit = await runGit(command, signal, (chunk) => {
    output += chunk.toString('latin1');
  });
  const failure = exitFailure(exit);
  if (failure !== null) throw failure;
  return /\d+(?:\.\d+)+/u.exec(output)?.[0] ?? 'of an unknown version';
}

import { opendir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { sentenceOfFailure } from '../../shared/sentences.ts';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import { gitEnvironment, gitVersion } from '../../shared/git-process.ts';
import { failed } from './failures.ts';
import { exitFailure } from './git-exit.ts';
import type { ResolvedOptions } from './options.ts';

/** Is git there, and can the root be read? */
export async function checkLocalGit(options: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  try {
    const version = await versionOf(options, signal);
    await (await opendir(options.root)).close();
    return { ok: true, detail: `git ${version}; the root folder can be read` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: sentenceOfFailure(error) };
    return { ok: false, detail: 'the root folder does not exist or can not be read; create it, or configure another' };
  }
}

async function versionOf({ gitBinary }: ResolvedOptions, signal: AbortSignal): Promise<string> {
  const command = { binary: gitBinary, folder: tmpdir(), environment: gitEnvironment({}), failed };
  const { version, exit } = await gitVersion(command, signal);
  const failure = exitFailure(exit);
  if (failure !== null) throw failure;
  return version ?? 'of an unknown version';
}

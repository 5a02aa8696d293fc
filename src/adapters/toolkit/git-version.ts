import { runGit, type GitCommand, type GitExit } from './git-process.ts';

/** The version of a git program, `2.39.5`; null where it does not tell. Answers with its exit where that is no success. */
export async function gitVersion(
  command: Omit<GitCommand, 'args'>,
  signal: AbortSignal,
): Promise<{ readonly version: string | null; readonly exit: GitExit }> {
  let output = '';
  const limit = { bytes: 4096, failure: () => command.failed('the git program is none: it says too much of its version') };
  const exit = await runGit({ ...command, args: ['--version'] }, limit, signal, (chunk) => {
    output += chunk.toString('latin1');
  });
  return { version: /\d+(?:\.\d+)+/u.exec(output)?.[0] ?? null, exit };
}

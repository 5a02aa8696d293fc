import { git, agents } from './history.ts';

/** Ways to ask git for the date of each file with one command. */
const commands: readonly (readonly string[])[] = [
  ['--full-history', '-c', '--diff-filter=A', '--name-only'],
  ['--full-history', '-c', '--name-only'],
  ['--full-history', '-c', '--name-status'],
  ['--full-history', '-m', '--name-status'],
  ['--full-history', '--name-only'],
  ['-m', '--diff-filter=A', '--name-only'],
  ['-c', '--name-only'],
  ['--diff-filter=A', '--name-only'],
  ['--name-only'],
  ['--name-status'],
];

/** Runs one of the commands to its end. */
export async function runCommand(gitDir: string, options: readonly string[]): Promise<string> {
  return await git(gitDir, ['log', '-z', '--no-renames', '--format=/%ct', ...options, 'HEAD', '--', agents]);
}

/** Returns the commands that yield the same dates as the given ones. */
export async function sufficientCommands(
  gitDir: string,
  dates: ReadonlyMap<string, number>,
): Promise<(readonly string[])[]> {
  const sufficient: (readonly string[])[] = [];
  for (const options of commands) {
    const told = datesIn(await runCommand(gitDir, options));
    if ([...dates].every(([path, seconds]) => told.get(path) === seconds)) sufficient.push(options);
  }
  return sufficient;
}

/** Returns the date of the last commit in the output, for each path. */
function datesIn(output: string): Map<string, number> {
  const dates = new Map<string, number>();
  let seconds = 0;
  for (const entry of output.split('\0').map((entry) => entry.trimStart())) {
    if (entry.startsWith('/')) seconds = Number(entry.slice(1));
    else dates.set(entry, seconds);
  }
  return dates;
}

/** The default of how long a setup script may run. */
export const defaultSetupTimeoutMs = 5 * 60_000;

/** Returns the path of a repository's setup script, relative to its root. */
export function setupScriptPath(product: string): string {
  return `.${product}/setup.sh`;
}

/** The first line of an executable script chooses its interpreter. Other scripts may be written for bash, so `sh` is the last choice. */
const runnerScript = '[ -x "$0" ] && exec "$0"; command -v bash >/dev/null && exec bash "$0"; exec sh "$0"';

/** Returns the command that runs the script in the root of its repository. */
export function setupCommand(path: string): readonly string[] {
  return ['sh', '-c', runnerScript, `./${path}`];
}

import { type GitCommand, gitEnvironment, type GitExit, type GitProcess, runGit, startGit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

export interface GitRun {
  readonly args: readonly string[];
  /** Where it runs. */
  readonly folder: string;
  /** Besides the clean one. */
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  readonly input?: string;
  readonly onWords?: (text: string) => void;
}

/** Runs git for a provider's repository. */
export interface Git {
  readonly provider: string;
  run(run: GitRun, signal: AbortSignal): Promise<GitExit & { readonly output: string }>;
  start(run: GitRun, signal: AbortSignal): GitProcess;
}

const maxOutputBytes = 64 * 1024 * 1024;

export function createGit(binary: string, provider: string): Git {
  const { failed } = providerFailures(provider);
  const limit = { bytes: maxOutputBytes, failure: () => failed('git tells more of the repository than is read') };
  // Git starts others for most of this, which have to end with it.
  const commandOf = ({ environment, ...run }: GitRun): GitCommand => {
    return { ...run, binary, failed, family: true, environment: gitEnvironment({ ...bounds, ...environment }) };
  };
  return {
    provider,
    async run(run, signal) {
      let output = '';
      const exit = await runGit(commandOf(run), limit, signal, (chunk) => {
        output += chunk.toString('latin1');
      });
      return { ...exit, output };
    },
    start: (run, signal) => startGit(commandOf(run), signal),
  };
}

// Nothing of whom the server runs as is found: no .netrc, no keys. Lists of ten million objects have to have room.
const bounds = { HOME: '/dev/null', GIT_ALLOC_LIMIT: '4g' };

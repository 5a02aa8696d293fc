import type { GitRemote } from '../../../ports/git-provider.ts';
import { type GitCommand, gitEnvironment, type GitExit, type GitProcess, runGit, startGit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

interface GitRun {
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

// Which way out the machine's network has, and whom it trusts.
const surroundings = [
  'http_proxy',
  'https_proxy',
  'all_proxy',
  'no_proxy',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'GIT_SSL_CAINFO',
  'GIT_SSL_CAPATH',
];

/**
 * What a git that fetches has in its environment. The credential is there and nowhere else: other users can read the
 * arguments of a process, and files stay. It goes to the one URL, and with no redirect to another.
 */
export function networkEnvironment({ url, authorization }: GitRemote, answerMs: number): NodeJS.ProcessEnv {
  if (!isUrl(url)) return { GIT_ALLOW_PROTOCOL: 'file' };
  const settings = [
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1'],
    ['http.lowSpeedTime', String(Math.max(1, Math.ceil(answerMs / 1000)))],
    ...(authorization === null ? [] : [[`http.${url}.extraHeader`, `Authorization: ${authorization}`]]),
  ] as const;
  return {
    ...Object.fromEntries(surroundings.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))),
    GIT_ALLOW_PROTOCOL: new URL(url).protocol.slice(0, -1),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}

/** Is it on a host, and not a folder of this machine? */
export function isUrl(remote: string): boolean {
  return /^https?:\/\//iu.test(remote);
}

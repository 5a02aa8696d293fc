import type { GitRemote } from '../../../ports/git-provider.ts';
import { type GitCommand, gitEnvironment, type GitExit, runGit, startGit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

interface GitRun extends Pick<GitCommand, 'args' | 'folder' | 'input' | 'onStderr'> {
  /** Added to the clean environment. */
  readonly environment: Readonly<NodeJS.ProcessEnv>;
}

export type GitRunner = ReturnType<typeof createGitRunner>;

const maxOutputBytes = 64 * 1024 * 1024;

// Git finds no files of the server's user, such as .netrc or keys. A list of ten million objects must fit into its memory.
const bounds = { HOME: '/dev/null', GIT_ALLOC_LIMIT: '4g' };

export function createGitRunner(binary: string, provider: string) {
  const { failed } = providerFailures(provider);
  // Most of these commands start other programs, which must end with git.
  const commandOf = ({ environment, ...run }: GitRun): GitCommand => {
    return { ...run, binary, failed, ownSession: true, environment: gitEnvironment({ ...bounds, ...environment }) };
  };
  return {
    provider,
    /** Returns git's output, unless `onOutput` gets it. If `onOutput` throws, git is ended. */
    async run(run: GitRun, signal: AbortSignal, onOutput?: (chunk: Buffer) => void): Promise<GitExit & { readonly stdout: string }> {
      const chunks: Buffer[] = [];
      const bytes = onOutput === undefined ? maxOutputBytes : Number.POSITIVE_INFINITY;
      const limit = { bytes, failure: () => failed('git tells more of the repository than is read') };
      const take = onOutput ?? ((chunk: Buffer): void => void chunks.push(chunk));
      const exit = await runGit(commandOf(run), limit, signal, take);
      return { ...exit, stdout: Buffer.concat(chunks).toString('utf8') };
    },
    /** Yields git's output, then calls `checkExit` with git's exit. If the output is not read to its end, git is ended. */
    async *stream(run: GitRun, signal: AbortSignal, checkExit: (exit: GitExit) => void): AsyncGenerator<Buffer> {
      const { stdout, exited, end } = startGit(commandOf(run), signal);
      // Handled below. If reading fails, that error is thrown instead.
      exited.catch(() => null);
      try {
        yield* stdout as AsyncIterable<Buffer>;
        checkExit(await exited);
      } finally {
        end(new Error('what git prints is not read any more'));
        await exited.catch(() => null);
      }
    },
  };
}

// The machine's proxies, and the certificates that it trusts.
const proxyVariables = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
const networkVariables = [...proxyVariables, 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'GIT_SSL_CAINFO', 'GIT_SSL_CAPATH'];

/** The credential is only in the environment, because others can read arguments, and files stay. Git sends it to this URL only. */
export function networkEnvironment({ url, authorization }: GitRemote, answerMs: number): NodeJS.ProcessEnv {
  if (!isUrl(url)) return { GIT_ALLOW_PROTOCOL: 'file' };
  const settings = [
    ['http.followRedirects', 'false'],
    ['http.lowSpeedLimit', '1'],
    ['http.lowSpeedTime', String(Math.max(1, Math.ceil(answerMs / 1000)))],
    ...(authorization === null ? [] : [[`http.${url}.extraHeader`, `Authorization: ${authorization}`]]),
  ];
  const variables = networkVariables.map((name) => [name, process.env[name]]).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(variables),
    GIT_ALLOW_PROTOCOL: new URL(url).protocol.slice(0, -1),
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(settings.map(([key], index) => [`GIT_CONFIG_KEY_${index}`, key])),
    ...Object.fromEntries(settings.map(([, value], index) => [`GIT_CONFIG_VALUE_${index}`, value])),
  };
}

/** Returns true if the remote is on a host, and not a folder of this machine. */
export function isUrl(remote: string): boolean {
  return /^https?:\/\//iu.test(remote);
}

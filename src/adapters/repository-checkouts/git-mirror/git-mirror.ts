import { isAbsolute } from 'node:path';
import { sentenceOfFailure } from '../../shared/status-and-error-messages.ts';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import { gitEnvironment, gitVersion } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { createCheckout } from './checkout.ts';
import { openMirrorStore, type MirrorStore } from './mirror-store.ts';

export interface GitMirrorOptions {
  /** An absolute path: a folder of its own, made if it does not exist, which nobody else may read. */
  readonly root: string;
  /** How large all mirrors may be, in bytes. The least recently used are removed first; those in use stay. */
  readonly limitBytes?: number;
  /** Limit of one checkout until its archive can be read, waiting for its turn included, in milliseconds. */
  readonly timeoutMs?: number;
  /** How long a host may take to list its branches, or send nothing while git fetches, in milliseconds. */
  readonly answerMs?: number;
  /** How many commits of a branch's history are fetched; null is all of it. */
  readonly depth?: number | null;
  /** How many repositories are fetched or packed at the same time. */
  readonly concurrency?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
}

export type ResolvedOptions = Required<GitMirrorOptions>;

const defaults = {
  limitBytes: 20 * 2 ** 30,
  timeoutMs: 15 * 60_000,
  answerMs: 60_000,
  depth: null,
  concurrency: 4,
  gitBinary: 'git',
};

const name = 'git-mirror';

/**
 * Fetches repositories into a folder of this machine with the git program, one bare mirror each, and makes work trees of them, with the
 * whole history of their branch and nothing else. One process at a time should use the folder: several do not damage the mirrors, but
 * may end each other's checkouts. Throws a `TypeError` if the root is not absolute.
 *
 * An archive's git runs until the archive is read to its end, cancelled, or the signal of its checkout fires.
 */
export function createGitMirror(options: GitMirrorOptions): RepositoryCheckouts {
  if (!isAbsolute(options.root)) throw new TypeError('The folder of the git mirrors has to be an absolute path');
  const resolved = { ...defaults, ...options };
  const closing = new AbortController();
  let opening: Promise<MirrorStore> | null = null;

  /** Opens the folder at the first use, and tries again after a failure. */
  function open(): Promise<MirrorStore> {
    opening ??= openMirrorStore(resolved, closing.signal).catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  }

  return {
    name,
    checkOut: createCheckout(resolved, open, closing.signal),
    async check() {
      const store = await open().catch(() => null);
      if (store === null) return { ok: false, detail: 'the folder of the git mirrors can not be made or written; check who owns it' };
      const git = await checkGit(resolved, closing.signal);
      const { mirrors, bytes } = store.usage();
      const repositories = `${mirrors} ${mirrors === 1 ? 'repository' : 'repositories'}`;
      const kept = `${repositories} kept, ${inMebibytes(bytes)} of ${inMebibytes(resolved.limitBytes)} MiB`;
      return git.ok ? { ok: true, detail: `${git.detail}; ${kept}` } : git;
    },
    async close() {
      closing.abort(providerFailures(name).failed({ code: 'closed' }));
      const store = await opening?.catch(() => null);
      await store?.close();
    },
  };
}

function inMebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

// The first that reads settings, and so the credential, from its environment.
const oldest = [2, 31] as const;

async function checkGit({ gitBinary, root }: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  try {
    const command = { binary: gitBinary, folder: root, environment: gitEnvironment({}), failed: providerFailures('git').failed };
    const { version, exit } = await gitVersion(command, signal);
    if (exit.code !== 0 || version === null) return { ok: false, detail: 'the git program does not tell its version; install git' };
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const isOld = major < oldest[0] || (major === oldest[0] && minor < oldest[1]);
    if (isOld) return { ok: false, detail: `git ${version} is too old; install ${oldest.join('.')} or newer` };
    return { ok: true, detail: `git ${version}` };
  } catch (error) {
    return { ok: false, detail: isFailure(error) ? sentenceOfFailure(error) : 'the check was ended' };
  }
}

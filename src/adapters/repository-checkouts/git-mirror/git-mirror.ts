import { isAbsolute } from 'node:path';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import { gitEnvironment, gitVersion } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { createCheckout } from './checkout.ts';
import { openWorkshop, type Workshop } from './mirror-store.ts';

export interface GitMirrorOptions {
  /** An absolute path: a folder of its own, made if it is not there, which nobody else may read. */
  readonly root: string;
  /** How large all that is kept may be, in bytes. What was not used for the longest goes first; what is in use stays. */
  readonly limitBytes?: number;
  /** Limit of one checkout until its archive can be read, waiting for a turn included, in milliseconds. */
  readonly timeoutMs?: number;
  /** How long a host may take to say where its branches are, or send nothing while it is fetched from, in milliseconds. */
  readonly answerMs?: number;
  /** How many commits of a branch's history are brought; null is all of it. */
  readonly depth?: number | null;
  /** How many repositories are fetched or packed at the same time. */
  readonly concurrency?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
}

export type ResolvedOptions = Required<GitMirrorOptions>;

/** Throws a `TypeError` where an option is not of its form. */
function resolveOptions(options: GitMirrorOptions): ResolvedOptions {
  if (!isAbsolute(options.root)) throw new TypeError('The folder of the git mirrors has to be an absolute path');
  return {
    limitBytes: 20 * 2 ** 30,
    timeoutMs: 15 * 60_000,
    answerMs: 60_000,
    depth: null,
    concurrency: 4,
    gitBinary: 'git',
    ...options,
  };
}

const name = 'git-mirror';

/**
 * Brings repositories to a folder of this machine with the git program, one bare mirror each, and makes work trees of
 * them, with the whole history of their branch and nothing else. One process at a time is to use the folder; several do
 * no harm to what is kept, but may end each other's checkouts.
 *
 * An archive's git goes on until it is read to its end, cancelled, or the signal of its checkout fires.
 */
export function createGitMirror(options: GitMirrorOptions): RepositoryCheckouts {
  const resolved = resolveOptions(options);
  const closing = new AbortController();
  let opening: Promise<Workshop> | null = null;

  /** At the first use; a folder that can't be used may be mended meanwhile. */
  function open(): Promise<Workshop> {
    opening ??= openWorkshop(resolved, closing.signal).catch((error: unknown) => {
      opening = null;
      throw error;
    });
    return opening;
  }

  const checkOut = createCheckout(resolved, open, closing.signal);

  async function check(): Promise<CheckResult> {
    const workshop = await open().catch(() => null);
    if (workshop === null) return { ok: false, detail: 'the folder of the git mirrors can not be made or written; check who owns it' };
    const git = await checkGit(resolved.gitBinary, resolved.root, closing.signal);
    const { mirrors, bytes } = workshop.leases.stock();
    const kept = `${mirrors} ${mirrors === 1 ? 'repository' : 'repositories'} kept, ${inMebibytes(bytes)} of ${inMebibytes(resolved.limitBytes)} MiB`;
    return git.ok ? { ok: true, detail: `${git.detail}; ${kept}` } : git;
  }

  return {
    name,
    checkOut,
    check,
    async close() {
      closing.abort(providerFailures(name).failed('it is closed'));
      const workshop = await opening?.catch(() => null);
      await workshop?.close();
    },
  };
}


function inMebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

// The first that takes settings, and so the credential, from its environment.
const oldest = [2, 31] as const;

/** Is there a git that is new enough? */
async function checkGit(binary: string, folder: string, signal: AbortSignal): Promise<CheckResult> {
  try {
    const command = { binary, folder, environment: gitEnvironment({}), failed: providerFailures('git').failed };
    const { version, exit } = await gitVersion(command, signal);
    if (exit.code !== 0 || version === null) return { ok: false, detail: 'the git program does not tell its version; install git' };
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const isOld = major < oldest[0] || (major === oldest[0] && minor < oldest[1]);
    if (isOld) return { ok: false, detail: `git ${version} is too old; install ${oldest.join('.')} or newer` };
    return { ok: true, detail: `git ${version}` };
  } catch (error) {
    return { ok: false, detail: isFailure(error) ? error.message : 'the check was ended' };
  }
}

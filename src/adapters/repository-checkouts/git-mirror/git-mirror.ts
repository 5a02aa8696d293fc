import { isAbsolute } from 'node:path';
import { sentenceOfFailure } from '../../shared/failure-sentences.ts';
import { isFailure } from '../../../domain/failure.ts';
import type { RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import { checkGit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { createLazy } from '../../shared/single-flight.ts';
import { createCheckout } from './checkout.ts';
import { createSnapshots } from './snapshot.ts';
import { openMirrorStore } from './mirror-store.ts';
import { createMirrorGit } from './mirror-git.ts';

export interface GitMirrorOptions {
  /** The absolute path of a folder for the mirrors only. It is created if it does not exist, and only this user may read it. */
  readonly root: string;
  /** The maximum size of all mirrors together, in bytes. The least recently used are removed first. Mirrors in use stay. */
  readonly limitBytes?: number;
  /** How many files and folders a work tree may have, and how many bytes. A larger one is refused before it is unpacked anywhere. */
  readonly maxFiles?: number;
  readonly maxWorkTreeBytes?: number;
  /** The time limit of one checkout until its archive can be read, including the wait for other checkouts, in milliseconds. */
  readonly timeoutMs?: number;
  /** How long a host may take to list its branches, or send nothing while git fetches, in milliseconds. */
  readonly answerMs?: number;
  /** How many repositories are fetched or packed at the same time. */
  readonly concurrency?: number;
  /** How many bytes the pack of a snapshot may have, and how long each step with it may take, in milliseconds. */
  readonly maxSnapshotBytes?: number;
  readonly snapshotTimeoutMs?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
}

export type ResolvedOptions = Required<GitMirrorOptions>;

const defaults = {
  limitBytes: 20 * 2 ** 30,
  maxFiles: 1_000_000,
  maxWorkTreeBytes: 20 * 2 ** 30,
  timeoutMs: 15 * 60_000,
  answerMs: 60_000,
  concurrency: 4,
  maxSnapshotBytes: 256 * 2 ** 20,
  snapshotTimeoutMs: 2 * 60_000,
  gitBinary: 'git',
};

const name = 'git-mirror';

/**
 * Fetches repositories with git into a folder of this machine, one bare mirror each. Makes work trees of them, with the whole history of
 * their branch and nothing else. Only one process should use the folder: several do not damage the mirrors, but may end each other's
 * checkouts. Throws a `TypeError` if the root is not absolute. The git process of an archive runs until the archive is read to its end or
 * cancelled, or the signal of its checkout fires.
 */
export function createGitMirror(options: GitMirrorOptions): RepositoryCheckouts {
  if (!isAbsolute(options.root)) throw new TypeError('The folder of the git mirrors has to be an absolute path');
  const resolved = { ...defaults, ...options };
  const closing = new AbortController();
  const open = createLazy(() => openMirrorStore(resolved, closing.signal));

  return {
    name,
    ...createCheckout(resolved, open, closing.signal),
    ...createSnapshots(resolved, open, closing.signal),
    async check() {
      const store = await open().catch(() => null);
      if (store === null) return { ok: false, detail: 'the folder of the git mirrors can not be written; check its owner and permissions' };
      const mirrors = await store.list().catch(() => null);
      if (mirrors === null) {
        return { ok: false, detail: 'the folder of the git mirrors can not be read; check its permissions, and restart if it was removed' };
      }
      const git = await checkGit(createMirrorGit(resolved.gitBinary, 'git'), resolved.root, closing.signal).catch((error: unknown) => ({
        ok: false,
        detail: isFailure(error) ? sentenceOfFailure(error) : 'the check was ended',
      }));
      if (!git.ok) return git;
      const bytes = mirrors.reduce((sum, mirror) => sum + mirror.bytes, 0);
      const repositories = `${mirrors.length} ${mirrors.length === 1 ? 'repository' : 'repositories'}`;
      const kept = `${repositories} kept, ${inMebibytes(bytes)} of ${inMebibytes(resolved.limitBytes)} MiB`;
      return { ok: true, detail: `${git.detail}; ${kept}` };
    },
    async close() {
      closing.abort(providerFailures(name).failed({ code: 'closed' }));
      await (await open.made())?.close();
    },
  };
}

function inMebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

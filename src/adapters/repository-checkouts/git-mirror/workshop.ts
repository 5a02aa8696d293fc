import { access, constants } from 'node:fs/promises';
import { createSingleFlight, type SingleFlight } from '../../shared/single-flight.ts';
import { createSemaphore, type Semaphore } from '../../shared/semaphore.ts';
import { createHolds, type Holds } from './holds.ts';
import { openFolders, type Folders } from './folders.ts';
import { createGit } from './git.ts';
import { createLeases, type Leases } from './leases.ts';
import type { ResolvedOptions } from './options.ts';
import { tidy } from './tidy.ts';

/** The opened folder, and who does what in it. */
export interface Workshop {
  readonly folders: Folders;
  readonly leases: Leases;
  readonly holds: Holds;
  /** What makes commits ready, by mirror, branch and commit. */
  readonly fetches: SingleFlight<string>;
  /** Bounds how many git programs work at the same time. */
  readonly work: Semaphore;
  close(): Promise<void>;
}

export async function openWorkshop(options: ResolvedOptions, closing: AbortSignal): Promise<Workshop> {
  closing.throwIfAborted();
  const folders = await openFolders(options.root);
  await access(options.root, constants.R_OK | constants.W_OK | constants.X_OK);
  const holds = createHolds(folders);
  const git = createGit(options.gitBinary, 'git');
  const leases = await createLeases(folders, options.limitBytes, async (mirror, inUse) => {
    await holds.trim(mirror);
    if (!inUse) await tidy(git, mirror, closing);
  });
  const fetches = createSingleFlight<string>();
  return {
    folders,
    leases,
    holds,
    fetches,
    work: createSemaphore(options.concurrency),
    async close() {
      await fetches.settled();
      await leases.settled();
      await folders.close();
    },
  };
}

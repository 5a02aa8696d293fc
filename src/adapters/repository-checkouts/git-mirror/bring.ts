import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { CheckoutProgress, CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { Damage } from './damage.ts';
import { makeExport } from './export.ts';
import { fetchHead, largestRepository } from './fetch.ts';
import type { Git } from './git.ts';
import type { Head } from './heads.ts';
import { commitAt, makeMirror, refOf, removeLeftovers, type Mirror } from './mirror.ts';
import type { ResolvedOptions } from './options.ts';
import { sizeOf } from './size.ts';
import type { Workshop } from './workshop.ts';

export interface Bringing {
  readonly git: Git;
  readonly workshop: Workshop;
  readonly options: ResolvedOptions;
  readonly mirror: Mirror;
  readonly request: CheckoutRequest;
  readonly head: Head;
  readonly progress: CheckoutProgress;
}

/**
 * Gets what the mirror lacks of the commit, and makes it ready to be handed out. Answers with the commit, or with a newer one that
 * the branch is at meanwhile. Only while nobody else works on the mirror, so that it can be made anew where it is damaged.
 */
export async function bring(bringing: Bringing, signal: AbortSignal): Promise<string> {
  const { workshop, mirror, progress } = bringing;
  try {
    return await attempt(bringing, signal);
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    // The mirror is a cache: what is wrong with it is gone when it is made anew.
    progress({ code: 'fetching_repository_again' });
    await workshop.folders.discard(mirror.gitDir);
    return await attempt(bringing, signal).catch((again: unknown) => {
      throw again instanceof Damage ? new Damage(again.message, { cause: error }) : again;
    });
  }
}

async function attempt({ git, workshop, options, mirror, request, head, progress }: Bringing, signal: AbortSignal): Promise<string> {
  const { folders, work } = workshop;
  await makeMirror(mirror, head.oid, folders.temporary());
  let oid = head.oid;
  if ((await commitAt(mirror, refOf(head.branch))) !== oid) {
    await removeLeftovers(mirror);
    progress({ code: 'fetching_repository', phase: null, percent: null });
    try {
      oid = await work.use(signal, () => fetchHead(git, mirror, request, head, options, progress, signal));
    } catch (error) {
      await removeLeftovers(mirror);
      if ((await sizeOf(mirror.gitDir)) > largestRepository(options)) await folders.discard(mirror.gitDir);
      throw error;
    }
  }
  const folder = exportOf(mirror, oid);
  const isThere = await stat(folder).then(() => true, () => false);
  if (isThere) return oid;
  const temporary = folders.temporary();
  try {
    await mkdir(temporary, { mode: 0o700 });
    await work.use(signal, () => makeExport(git, mirror, oid, temporary, signal));
    await rename(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return oid;
}

/** Where a commit is that was made ready. */
export function exportOf({ exports }: Mirror, oid: string): string {
  return join(exports, oid);
}

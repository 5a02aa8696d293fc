import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A git folder of our own that stands in for a repository's. */
export interface Shadow {
  readonly folder: string;
  remove(): Promise<void>;
}

const sha256Digits = 64;

/**
 * Makes a private git folder with a configuration of ours and no refs, hooks, attributes or grafts. Git runs in it and
 * takes nothing but objects from the repository, so that nothing else in the repository is read, let alone run.
 */
export async function createShadow(parent: string, oid: string, shallow: string): Promise<Shadow> {
  const folder = await mkdtemp(join(parent, 'skep-git-'));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await Promise.all([
      mkdir(join(folder, 'refs')),
      writeFile(join(folder, 'HEAD'), 'ref: refs/heads/none\n'),
      writeFile(join(folder, 'config'), configFor(oid.length === sha256Digits)),
      ...(shallow === '' ? [] : [writeFile(join(folder, 'shallow'), shallow)]),
    ]);
  } catch (error) {
    await remove();
    throw error;
  }
  return { folder, remove };
}

/** The configuration of a git folder of ours, for repositories whose objects are named by SHA-256, or by SHA-1. */
export function configFor(sha256: boolean): string {
  const core = `[core]\n\trepositoryFormatVersion = ${sha256 ? 1 : 0}\n\tbare = true\n\tuseReplaceRefs = false\n`;
  return sha256 ? `${core}[extensions]\n\tobjectFormat = sha256\n` : core;
}

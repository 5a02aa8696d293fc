import { lstat, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive } from '../../shared/git-process.ts';
import { failed } from './failures.ts';
import { type Head, readHead, readShallow } from './head.ts';
import { objectStoresOf, refuseStrayObjects } from './object-folders.ts';
import { configFor } from './private-git-folder.ts';
import type { LocalRepository } from './repository-location.ts';

/** Git folders of our own from which git fetches, one for each repository that somebody asked for. */
export interface StandIns {
  /** The folder's absolute path. What it has is what the repository has: only where HEAD points to is as of now. */
  of(repository: LocalRepository, signal: AbortSignal): Promise<string>;
  /** Removes them. */
  remove(): Promise<void>;
}

/**
 * A git that fetches runs the other side in the repository itself. So it is given a folder that has the repository's
 * objects, branches and tags, by links, and a configuration of ours: nothing else of the repository is in force there.
 */
export function createStandIns(temporaryFolder: string): StandIns {
  let parent: Promise<string> | null = null;
  const names = new Map<string, string>();
  const underWay = new Set<Promise<unknown>>();

  /** Whatever empties temporary folders may have taken it away. */
  async function folderOf({ gitDir, commonDir }: LocalRepository): Promise<string> {
    parent ??= openParent(temporaryFolder);
    const name = names.get(gitDir) ?? String(names.size);
    names.set(gitDir, name);
    const folder = join(await parent, name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await Promise.all(linked.map((entry) => link(join(commonDir, entry), join(folder, entry))));
    return folder;
  }

  async function makeFor(repository: LocalRepository, signal: AbortSignal): Promise<string> {
    const stores = await objectStoresOf(repository);
    await Promise.all([refuseStrayObjects(repository, stores, signal), refuseStrayRefs(repository)]);
    const [head, shallow, folder] = await Promise.all([readHead(repository), readShallow(repository), folderOf(repository)]);
    await put(folder, 'config', configFor(head.oid?.length === sha256Digits));
    await (shallow === '' ? rm(join(folder, 'shallow'), { force: true }) : put(folder, 'shallow', shallow));
    await put(folder, 'HEAD', headFile(head));
    return folder;
  }

  return {
    async of(repository, signal) {
      signal.throwIfAborted();
      const making = makeFor(repository, signal);
      const settled = making.catch(() => null).finally(() => underWay.delete(settled));
      underWay.add(settled);
      return await making;
    },
    async remove() {
      // Who is left behind by the end of its caller would make it anew.
      await Promise.all(underWay);
      if (parent !== null) await rm(await parent, { recursive: true, force: true });
    },
  };
}

const parentName = 'skep-git-remotes-';

/** A folder with the number of this process in its name. Those of processes that have ended are removed. */
async function openParent(temporaryFolder: string): Promise<string> {
  for (const name of await readdir(temporaryFolder)) {
    const pid = name.startsWith(parentName) ? Number.parseInt(name.slice(parentName.length), 10) : Number.NaN;
    if (Number.isNaN(pid) || isProcessAlive(pid)) continue;
    // Another user's stays.
    await rm(join(temporaryFolder, name), { recursive: true, force: true }).catch(() => undefined);
  }
  return await mkdtemp(join(temporaryFolder, `${parentName}${process.pid}-`));
}

const linked = ['objects', 'refs', 'packed-refs'];

async function link(target: string, path: string): Promise<void> {
  await symlink(target, path).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  });
}

const sha256Digits = 64;
let written = 0;

/** In one step, for those who read it at this moment. */
async function put(folder: string, name: string, content: string): Promise<void> {
  written += 1;
  const temporary = join(folder, `${name}.${written}.new`);
  await writeFile(temporary, content);
  await rename(temporary, join(folder, name));
}

// No branch can have the name, so that a repository without a branch has no default one.
const nowhere = 'ref: refs/heads/.invalid\n';

function headFile({ branch, oid }: Head): string {
  if (branch !== null) return `ref: refs/heads/${branch}\n`;
  return oid === null ? nowhere : `${oid}\n`;
}

/** Where the branches and tags are listed has to be inside; the files there hold nothing but names of objects. */
async function refuseStrayRefs({ root, commonDir }: LocalRepository): Promise<void> {
  for (const path of ['refs', 'packed-refs'].map((name) => join(commonDir, name))) {
    const exists = await lstat(path).then(() => true, () => false);
    if (exists && (await root.resolve(path)) === null) throw failed("the repository's branches lie outside the root folder");
  }
}

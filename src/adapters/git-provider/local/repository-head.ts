import { readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRefName, oidForm } from '../../shared/git-process.ts';
import { failed } from './local-git-failures.ts';
import type { LocalRepository } from './repository-folder.ts';

/** The branch and the commit that a clone of the repository would check out. */
export interface Head {
  /** Null if HEAD is detached. */
  readonly branch: string | null;
  /** The commit, in 40 (SHA-1) or 64 (SHA-256) hexadecimal digits; null if the branch has none yet. */
  readonly oid: string | null;
}

const maxDepth = 5;
const refLimitBytes = 4096;
const packedRefsLimitBytes = 256 * 1024 * 1024;
// The branch in HEAD of a repository with the reftable format.
const noBranch = 'refs/heads/.invalid';
const branchPrefix = 'refs/heads/';
const perWorkTree = ['refs/bisect/', 'refs/worktree/', 'refs/rewritten/'];

/** Reads HEAD from the files, so the repository's own configuration has no effect. */
export async function readHead(repository: LocalRepository): Promise<Head> {
  let ref = 'HEAD';
  for (let depth = 0; depth <= maxDepth; depth += 1) {
    const value = await readRef(repository, ref);
    const branch = ref.startsWith(branchPrefix) ? ref.slice(branchPrefix.length) : null;
    if (value === null) return { branch: null, oid: null };
    if (oidForm.test(value)) return { branch, oid: value };
    const target = /^ref:\s*(.+)$/su.exec(value)?.[1];
    if (target === undefined || !isRef(target)) throw failed(`the repository's ${ref === 'HEAD' ? 'HEAD' : 'branch'} is broken`);
    ref = target;
    if (ref === noBranch && (await stat(join(repository.commonDir, 'reftable')).catch(() => null))?.isDirectory() === true) {
      throw failed('the repository keeps its branches in the reftable format, which is not supported');
    }
  }
  throw failed("the repository's HEAD goes round in circles");
}

async function readRef(repository: LocalRepository, ref: string): Promise<string | null> {
  const own = ref === 'HEAD' || perWorkTree.some((prefix) => ref.startsWith(prefix));
  const path = join(own ? repository.gitDir : repository.commonDir, ref);
  const link = await readlink(path).catch(() => null);
  if (link !== null && isRef(link)) return `ref: ${link}`;
  const loose = await repository.root.read(path, refLimitBytes);
  if (loose !== null) return loose.toString('utf8').trimEnd();
  if (link !== null) throw failed("the repository's HEAD or branch is a link that leads nowhere");
  if (own) return null;
  const packed = await repository.root.read(join(repository.commonDir, 'packed-refs'), packedRefsLimitBytes);
  return packed === null ? null : findPackedRef(packed, ref);
}

/** Returns the object id of a ref from a `packed-refs` file, with lines `OID NAME`. Null if the ref is not there. */
function findPackedRef(content: Buffer, ref: string): string | null {
  const lines = `${content.toString('latin1')}\n`;
  const at = lines.indexOf(` ${Buffer.from(ref).toString('latin1')}\n`);
  return at === -1 ? null : lines.slice(lines.lastIndexOf('\n', at) + 1, at);
}

function isRef(name: string): boolean {
  return name.startsWith('refs/') && (name === noBranch || isRefName(name));
}

const shallowLimitBytes = 4 * 1024 * 1024;

/** Returns the commits at which a shallow clone's history is cut off, in git's form. Empty if the history is complete. */
export async function readShallow({ root, commonDir }: LocalRepository): Promise<string> {
  const content = (await root.read(join(commonDir, 'shallow'), shallowLimitBytes))?.toString('latin1') ?? '';
  if (!/^(?:[0-9a-f]{40,64}(?:\n|$))*$/u.test(content)) throw failed("the repository's list of shallow commits is broken");
  return content;
}

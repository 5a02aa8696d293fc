import type { AgentCommit, FileChange } from '../../../domain/change.ts';
import { SnapshotRefusal } from '../../../ports/work-tree-snapshot.ts';
import { type GitRunner, isSha256 } from '../../shared/git-process.ts';
import { collectEntries, diffFlags, diffSettings, listFlags, logFlags, nameFlags, parseCommits, parseFiles } from './change-list.ts';
import type { SnapshotHeader } from './snapshot-script.ts';

/** A repository on this host with the received objects of a snapshot. */
export interface SnapshotFolder {
  readonly git: GitRunner;
  readonly folder: string;
  readonly base: string | null;
  readonly header: SnapshotHeader;
}

const diff = [...diffSettings, 'diff-tree', ...diffFlags];

const emptyTree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const emptyTreeOfSha256 = '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321';

/** Throws a refusal if git found something wrong with the objects, or has no space for them. */
export function requireIntact({ code, stderr }: { readonly code: number | null; readonly stderr: string }): void {
  if (code === 0) return;
  const isFull = /No space left|quota exceeded/iu.test(stderr);
  const cause = new Error(`git ended with exit code ${code ?? 'none'}: ${stderr}`);
  throw new SnapshotRefusal({ code: isFull ? 'disk_full' : 'damaged' }, { cause });
}

/** Returns the commits since the base, newest first. */
export async function listCommits(snapshot: SnapshotFolder, signal: AbortSignal): Promise<AgentCommit[]> {
  const { base, header: { head, boundary } } = snapshot;
  if (head === null || head === base) return [];
  return parseCommits(await entriesOf(snapshot, ['log', ...logFlags, head, '--not', ...boundary], signal));
}

/** Returns the files that differ from the base. */
export async function listFiles(snapshot: SnapshotFolder, signal: AbortSignal): Promise<FileChange[]> {
  const { base, header: { head, tree } } = snapshot;
  const [entries, uncommitted] = await Promise.all([
    entriesOf(snapshot, [...diff, ...listFlags, orEmptyTree(base, tree), tree], signal),
    head === base ? null : entriesOf(snapshot, ['diff-tree', ...nameFlags, orEmptyTree(head, tree), tree], signal),
  ]);
  return parseFiles(entries, uncommitted === null ? null : new Set(uncommitted));
}

async function entriesOf({ git, folder }: SnapshotFolder, args: readonly string[], signal: AbortSignal): Promise<string[]> {
  const { entries, take } = collectEntries();
  requireIntact(await git.run({ args, folder }, signal, take));
  return entries;
}

/** Returns the difference as a patch for `git apply --binary`. */
export function patchOf(snapshot: SnapshotFolder, paths: readonly string[] | null, signal: AbortSignal): ReadableStream<Uint8Array> {
  const { git, folder, base, header: { tree } } = snapshot;
  const args = [...diff, '-p', '--binary', orEmptyTree(base, tree), tree, ...(paths === null ? [] : ['--', ...paths])];
  return ReadableStream.from(git.stream({ args, folder }, signal, requireIntact));
}

/** Returns the commit, or the empty tree if there is none. `tree` tells the hash algorithm. */
function orEmptyTree(commit: string | null, tree: string): string {
  return commit ?? (isSha256(tree) ? emptyTreeOfSha256 : emptyTree);
}

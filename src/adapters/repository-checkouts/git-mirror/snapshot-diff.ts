import type { AgentCommit, FileChange, FileChangeStatus } from '../../../domain/change.ts';
import { SnapshotRefusal } from '../../../ports/work-tree-snapshot.ts';
import { isSha256, splitAtNul } from '../../shared/git-process.ts';
import type { GitRunner } from './git-runner.ts';
import type { SnapshotHeader } from './snapshot-script.ts';

/** A repository of this host's own, with what came of a snapshot. */
export interface SnapshotFolder {
  readonly git: GitRunner;
  readonly folder: string;
  readonly base: string | null;
  readonly header: SnapshotHeader;
}

/** How many commits are listed, and how many files may differ. */
const maxCommits = 1000;
const maxFiles = 50_000;

// A larger file counts as binary, and is not compared line by line. Renames are not looked for among too many files.
const settings = ['-c', 'core.bigFileThreshold=16m', '-c', 'diff.renames=true'];
const diff = [...settings, 'diff-tree', '-r', '--no-ext-diff', '--no-textconv', '--no-color', '--full-index', '-M', '-l2000'];

const emptyTrees = {
  sha1: '4b825dc642cb6eb9a060e54bf8d69288fbee4904',
  sha256: '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321',
};

/** Throws a refusal if git found something wrong with the objects, or has no space for them. */
export function demandWhole({ code, stderr }: { readonly code: number | null; readonly stderr: string }): void {
  if (code === 0) return;
  const isFull = /No space left|quota exceeded/iu.test(stderr);
  const cause = new Error(`git ended with exit code ${code ?? 'none'}: ${stderr}`);
  throw new SnapshotRefusal({ code: isFull ? 'disk_full' : 'damaged' }, { cause });
}

/** The commits since the base, newest first. */
export async function listCommits({ git, folder, base, header }: SnapshotFolder, signal: AbortSignal): Promise<AgentCommit[]> {
  const { head, boundary } = header;
  if (head === null || head === base) return [];
  const format = '--format=%H%x00%an%x00%ae%x00%ct%x00%s';
  const args = ['log', '-z', '--no-mailmap', '--no-show-signature', `-n${maxCommits}`, format, head, '--not', ...boundary];
  const fields: string[] = [];
  demandWhole(await git.run({ args, folder, environment: { GIT_DIR: folder } }, signal, splitAtNul((field) => fields.push(utf8(field)))));
  return Array.from({ length: Math.floor(fields.length / 5) }, (_, index) => {
    const [commit = '', authorName = '', authorEmail = '', seconds = '', subject = ''] = fields.slice(5 * index, 5 * index + 5);
    return { commit, authorName, authorEmail, committedAt: Number(seconds) * 1000, subject };
  });
}

/** The files that differ from the base. */
export async function listFiles(snapshot: SnapshotFolder, signal: AbortSignal): Promise<FileChange[]> {
  const { tree } = snapshot.header;
  const names = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', headOf(snapshot), tree];
  const [entries, uncommitted] = await Promise.all([
    entriesOf(snapshot, [...diff, '-z', '--raw', '--numstat', '--no-abbrev', baseOf(snapshot), tree], signal),
    entriesOf(snapshot, names, signal),
  ]);
  return filesIn(entries, new Set(uncommitted));
}

async function entriesOf({ git, folder }: SnapshotFolder, args: readonly string[], signal: AbortSignal): Promise<string[]> {
  const entries: string[] = [];
  const take = splitAtNul((entry) => {
    // A file has at most six entries: three of its modes and names, and three of its lines.
    if (entries.push(entry) > 6 * maxFiles) throw tooMany();
  });
  demandWhole(await git.run({ args, folder, environment: { GIT_DIR: folder } }, signal, take));
  return entries;
}

function tooMany(): SnapshotRefusal {
  return new SnapshotRefusal({ code: 'too_large', limit: `${maxFiles} files that differ` });
}

/**
 * Parses `--raw --numstat -z`: for each file `:MODE MODE OID OID STATUS` and its path or, if it was renamed, both; then for each in the
 * same order `ADDED<tab>REMOVED<tab>PATH` or, if it was renamed, `ADDED<tab>REMOVED<tab>` and both paths.
 */
function filesIn(entries: readonly string[], uncommitted: ReadonlySet<string>): FileChange[] {
  const files: Omit<FileChange, 'binary' | 'added' | 'removed'>[] = [];
  let at = 0;
  while (entries[at]?.startsWith(':') === true) {
    const [oldMode = '', mode = '', oldOid, oid, letter = ''] = entries[at]?.slice(1).split(' ') ?? [];
    const isRenamed = letter.startsWith('R');
    const [first = '', second = first] = entries.slice(at + 1, at + (isRenamed ? 3 : 2));
    at += isRenamed ? 3 : 2;
    files.push({
      path: utf8(second),
      status: statusOf(letter, oldOid === oid),
      oldPath: isRenamed ? utf8(first) : null,
      oldMode: letter === 'A' ? null : oldMode,
      mode: letter === 'D' ? null : mode,
      committed: !uncommitted.has(second) && !(isRenamed && uncommitted.has(first)),
    });
  }
  if (files.length > maxFiles) throw tooMany();
  return files.map((file) => {
    const [added = '', removed = ''] = entries[at]?.split('\t') ?? [];
    at += file.oldPath === null ? 1 : 3;
    const binary = added === '-';
    return { ...file, binary, added: binary ? null : Number(added), removed: binary ? null : Number(removed) };
  });
}

function statusOf(letter: string, isSameContent: boolean): FileChangeStatus {
  if (letter === 'A') return 'added';
  if (letter === 'D') return 'deleted';
  if (letter.startsWith('R')) return 'renamed';
  return isSameContent ? 'mode_changed' : 'modified';
}

/** The difference as `git apply --binary` takes it. */
export function patchOf(snapshot: SnapshotFolder, paths: readonly string[] | null, signal: AbortSignal): ReadableStream<Uint8Array> {
  const { git, folder, header } = snapshot;
  const args = [...diff, '-p', '--binary', baseOf(snapshot), header.tree, ...(paths === null ? [] : ['--', ...paths])];
  return ReadableStream.from(git.stream({ args, folder, environment: { GIT_DIR: folder } }, signal, demandWhole));
}

function baseOf({ base, header: { tree } }: SnapshotFolder): string {
  return base ?? emptyTrees[isSha256(tree) ? 'sha256' : 'sha1'];
}

function headOf({ header: { head, tree } }: SnapshotFolder): string {
  return head ?? emptyTrees[isSha256(tree) ? 'sha256' : 'sha1'];
}

/** Names are read one character a byte. */
function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

import type { AgentCommit, ChangeList, FileChange, FileChangeStatus } from '../../../domain/change.ts';
import { SnapshotRefusal } from '../../../ports/work-tree-snapshot.ts';
import { oidForm, splitAtNul } from '../../shared/git-process.ts';

/** How many commits are listed, and how many files may differ. */
const maxCommits = 1000;
const maxFiles = 50_000;

// A larger file counts as binary, and is not compared line by line. Renames are not looked for among too many files.
export const diffSettings = ['-c', 'core.bigFileThreshold=16m', '-c', 'diff.renames=true'];
export const diffFlags = ['-r', '--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=none', '--full-index', '-M', '-l2000'];
/** The flags for the files that differ, for their names only, and for commits. */
export const listFlags = ['-z', '--raw', '--numstat', '--no-abbrev'];
export const nameFlags = ['-r', '-z', '--name-only', '--no-renames', '--ignore-submodules=none'];
export const logFlags = [
  '-z', '--no-mailmap', '--no-show-signature', '--encoding=UTF-8', `-n${maxCommits}`, '--format=%H%x00%an%x00%ae%x00%ct%x00%s',
];

/** The mode of a repository inside the work tree. Git has only its last commit, so its files are left out. */
const innerRepository = '160000';

/** Collects git's output with `-z`. Names have one character per byte. Throws a refusal if the output is too long. */
export function collectEntries(): { readonly entries: string[]; readonly take: (chunk: Buffer) => void } {
  const entries: string[] = [];
  const take = splitAtNul((entry) => {
    // A file has at most eight entries: three of its modes and names, three of its lines, and two of names that are not committed.
    if (entries.push(entry) > 8 * maxFiles) throw tooMany();
  }, tooLarge);
  return { entries, take };
}

function tooMany(): SnapshotRefusal {
  return tooLarge(`${maxFiles} files that differ`);
}

function tooLarge(limit: string): SnapshotRefusal {
  return new SnapshotRefusal({ code: 'too_large', limit });
}

function malformed(what: string): SnapshotRefusal {
  return new SnapshotRefusal({ code: 'snapshot_damaged' }, { cause: new Error(`the command wrote ${what} of another form`) });
}

/** Parses the output of the list command, which is not trusted. */
export function parseChangeList(base: string | null, entries: readonly string[]): ChangeList {
  const [, head = '', complete] = /^changes (-|[0-9a-f]+) ([01])$/u.exec(entries[0] ?? '') ?? [];
  const filesEnd = entries.indexOf('', 1);
  const namesEnd = entries.indexOf('', filesEnd + 1);
  const isValid = head === '-' || oidForm.test(head);
  if (!isValid || filesEnd === -1 || namesEnd === -1) throw malformed('a list');
  const files = parseFiles(entries.slice(1, filesEnd), head === (base ?? '-') ? null : new Set(entries.slice(filesEnd + 1, namesEnd)));
  return {
    head: head === '-' ? null : head,
    complete: complete === '1' && !files.some(({ mode }) => mode === innerRepository),
    commits: parseCommits(entries.slice(namesEnd + 1)),
    files,
  };
}

/** Parses git's output with `logFlags`. */
export function parseCommits(fields: readonly string[]): AgentCommit[] {
  if (fields.length % 5 !== 0 || fields.length > 5 * maxCommits) throw malformed('commits');
  return Array.from({ length: fields.length / 5 }, (_, index) => {
    const [commit = '', authorName = '', authorEmail = '', seconds = '', subject = ''] = fields.slice(5 * index, 5 * index + 5).map(utf8);
    if (!oidForm.test(commit) || !/^\d{1,12}$/u.test(seconds)) throw malformed('commits');
    return { commit, authorName, authorEmail, committedAt: Number(seconds) * 1000, subject };
  });
}

const fileForm = /^:(?<oldMode>[0-7]{6}) (?<mode>[0-7]{6}) (?<oldOid>[0-9a-f]+) (?<oid>[0-9a-f]+) (?<letter>[ADMRT])\d*$/u;
const linesForm = /^(?<added>\d{1,15}|-)\t(?<removed>\d{1,15}|-)\t/u;

/**
 * Parses git's output with `listFlags`: for each file `:MODE MODE OID OID STATUS` and its path or, if it was renamed, both paths; then for
 * each in the same order `ADDED<tab>REMOVED<tab>PATH` or, if it was renamed, `ADDED<tab>REMOVED<tab>` and both paths. `uncommitted` has the
 * names of the files that differ from the last commit. Null means all.
 */
export function parseFiles(entries: readonly string[], uncommitted: ReadonlySet<string> | null): FileChange[] {
  const files: Omit<FileChange, 'binary' | 'added' | 'removed'>[] = [];
  let at = 0;
  while (entries[at]?.startsWith(':') === true) {
    const { oldMode = '', mode = '', oldOid, oid, letter = '' } = fileForm.exec(entries[at] ?? '')?.groups ?? {};
    const isRenamed = letter === 'R';
    const [first = '', second = first] = entries.slice(at + 1, at + (isRenamed ? 3 : 2));
    if (letter === '' || second === '') throw malformed('a file');
    at += isRenamed ? 3 : 2;
    files.push({
      path: utf8(second),
      status: statusOf(letter, oldOid === oid),
      oldPath: isRenamed ? utf8(first) : null,
      oldMode: letter === 'A' ? null : oldMode,
      mode: letter === 'D' ? null : mode,
      committed: uncommitted !== null && !uncommitted.has(second) && !(isRenamed && uncommitted.has(first)),
    });
  }
  if (files.length > maxFiles) throw tooMany();
  const listed = files.map((file) => {
    const { added, removed } = linesForm.exec(entries[at] ?? '')?.groups ?? {};
    if (added === undefined) throw malformed('the lines of a file');
    at += file.oldPath === null ? 1 : 3;
    const binary = added === '-';
    return { ...file, binary, added: binary ? null : Number(added), removed: binary ? null : Number(removed) };
  });
  if (at !== entries.length) throw malformed('files');
  return listed;
}

function statusOf(letter: string, isSameContent: boolean): FileChangeStatus {
  if (letter === 'A') return 'added';
  if (letter === 'D') return 'deleted';
  if (letter === 'R') return 'renamed';
  return isSameContent ? 'mode_changed' : 'modified';
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

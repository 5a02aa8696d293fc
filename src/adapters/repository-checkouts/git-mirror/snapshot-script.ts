import { oidForm } from '../../shared/git-process.ts';
import { type SnapshotRequest, SnapshotRefusal } from '../../../ports/work-tree-snapshot.ts';
import { diffFlags, diffSettings, listFlags, logFlags, nameFlags } from './change-list.ts';

/** The script's own exit codes. */
const exitCodes = { noGit: 64, noBase: 65 };

/** Sets git's environment, and `g`, which runs git without hooks, a file system monitor, or a sparse checkout. */
const environment = String.raw`
set -eu
umask 077
unset GIT_NAMESPACE GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT
command -v git >/dev/null || exit ${exitCodes.noGit}
export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD" GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0
export GIT_TERMINAL_PROMPT=0 GIT_LITERAL_PATHSPECS=1 LC_ALL=C
# Without a split index, the copy of the index is whole. Otherwise, git adds no files outside of a sparse checkout.
g() {
  git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.safecrlf=false -c core.splitIndex=false -c core.sparseCheckout=false \
    -c gc.auto=0 -c 'safe.directory=*' "$@"
}
`;

/** Checks that the base is there, and makes git write to a copy of the index and to a temporary folder. Sets `from`, `to` and `work`. */
const copyOfIndex = `
base=$1
others=$2
[ -e .git ] || exit ${exitCodes.noBase}
objects=$(g rev-parse --git-path objects) || exit 128
head=$(g rev-parse -q --verify 'HEAD^{commit}' || :)
if [ "$base" != "$head" ] && [ -n "$base" ]; then g cat-file -e "$base^{commit}" || exit ${exitCodes.noBase}; fi
objects=$(cd "$objects" && pwd -P) || exit ${exitCodes.noBase}
index=$(g rev-parse --git-path index)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/objects"
if [ -f "$index" ]; then cp -p "$index" "$work/index"; fi
export GIT_INDEX_FILE="$work/index" GIT_OBJECT_DIRECTORY="$work/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects"
empty() { g hash-object -t tree -w --stdin </dev/null; }
from=\${base:-$(empty)}
to=\${head:-$(empty)}
`;

/** Leaves the folders of others as the base has them. The arguments `$@` are then patterns that exclude them. */
const foldersOfOthers = `
# Only here, git's paths are patterns.
patterns() (
  export GIT_LITERAL_PATHSPECS=0
  g "$@"
)
# The shell looks for folders that match.
set -- \${others:+$others/}
if [ ! -d "\${1:-}" ]; then
  set --
else
  patterns reset -q "$from" -- ":(glob)$others" ":(glob)$others/**"
  set -- ":(exclude,glob)$others/**"
fi
add() {
  patterns -c core.bigFileThreshold=1 -c core.fsync=none -c advice.addEmbeddedRepo=false add -A --ignore-errors . "$@" \\
    >"$work/report" 2>&1
}
`;

/** Removes the marks by which git would not look at files. */
const marks = String.raw`
# Git does not look at files that are marked as unchanged or to skip. A sparse checkout skips its missing files, so those are not deleted.
g ls-files -v >"$work/files"
sed -n 's/^[a-zS] //p' "$work/files" >"$work/marked"
if [ -s "$work/marked" ]; then
  g update-index --no-assume-unchanged --stdin <"$work/marked"
  g update-index --no-skip-worktree --stdin <"$work/marked"
  { sed -n 's/^[sS] //p' "$work/files"; g ls-files -d | sort -u; } | sort | uniq -d | g update-index --skip-worktree --stdin
fi
`;

/** Adds the files. Sets `complete`, which is 0 if some can't be added. */
const addFiles = String.raw`
# Mostly, git reports nothing.
reported() { [ -s "$work/report" ] && [ -n "$(sed -n "$@" "$work/report")" ]; }
# After the refresh, only changed files have to be added. With a threshold of 1, git treats every file as big and writes all of them into
# one pack. Loose objects would take several times as long.
g update-index -q --refresh >/dev/null 2>&1 || :
# Exit code 1 means that some files can't be added. Any other one means that none was. A folder that git can't open is only a warning. So
# are a folder that is gone, and the user's settings that git may not read, but the changes are complete without those.
# A file that is gone before git reads it ends git, so then git lists the files again.
for each in 1 2 3 4 5; do
  status=0
  add "$@" || status=$?
  reported '/^fatal: .*: No such file or directory$/p' || break
done
complete=1
if reported -e '/^warning: unable to access /d' -e '/: No such file or directory$/d' -e '/could not open directory/p' \
  -e '/: Permission denied$/p'
then complete=0; fi
if [ -s "$work/report" ]; then cat "$work/report" >&2; fi
case $status in 0) ;; 1) complete=0 ;; *) exit 128 ;; esac
`;

/** Sets `complete` to 0 if there is work that no snapshot has: in other refs, and in repositories inside the work tree. */
const workElsewhere = String.raw`
# Prints something if other refs have commits that neither the last commit nor a remote has, or if there are other work trees. What only
# the reflog has counts as given up.
elsewhere() {
  last=$1
  shift
  g rev-list -n 1 "$@" --all --not $last --remotes || echo failed
  trees=$(g rev-parse --git-path worktrees)
  if [ -d "$trees" ]; then ls -A "$trees" || echo "$trees"; fi
}
# Prints something for each repository inside the work tree that has work outside of its last commit. Git adds only that.
inner() {
  patterns -c core.quotePath=false ls-files -s -- . "$@" | sed -n 's/^160000 [^ ]* [0-3].//p' | while IFS= read -r folder; do (
    # A quoted name can't be opened.
    case $folder in '"'*) echo "$folder" ;; esac
    [ -d "$folder" ] || exit 0
    cd "./$folder" || { echo "$folder"; exit; }
    if [ ! -e .git ]; then ls -A || echo "$folder"; exit; fi
    export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"
    unset GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
    g status --porcelain --untracked-files=all --ignore-submodules=none || echo "$folder"
    # The status leaves out files with a mark.
    g ls-files -v | sed -n '/^[a-zS] /p'
    # Its tags are those of its remote.
    elsewhere HEAD '--exclude=refs/tags/*'
    inner
  ) done
}
found=$(inner "$@"; elsewhere "$head $base")
[ -z "$found" ] || complete=0
`;

/**
 * Adds all files that are not ignored to a copy of the index, but leaves the folders of others as the base has them. Writes nothing into
 * the repository: the copy and the new objects are in a temporary folder. The copy keeps the time stamp of the index, by which git decides
 * which files to read.
 */
const addAll = [environment, copyOfIndex, foldersOfOthers, marks, addFiles, workElsewhere].join('');

/**
 * Writes a header line about the work tree, then a pack: the commits since the base, the tree with all added files, and the base's objects
 * that a comparison and git's check need, without the base's history.
 */
const snapshotScript = `${addAll}
# Loose trees are not compressed here, because the pack compresses them.
tree=$(g -c core.looseCompression=0 write-tree)
# Prints all objects that differ between two trees, those of both trees.
oids() {
  g diff-tree -r -t --raw --no-abbrev --no-renames --ignore-submodules=none "$1" "$2" >"$work/raw"
  sed -n -e h -e '/^:160000 /!s/^:[0-7]* [0-7]* \\([0-9a-f]*\\) .*/\\1/p' \\
    -e g -e '/^:[0-7]* 160000 /!s/^:[0-7]* [0-7]* [0-9a-f]* \\([0-9a-f]*\\) .*/\\1/p' "$work/raw" | sed '/^0*$/d'
}
boundary=$base
{
  oids "$from" "$tree"
  # Git adds a repository inside the work tree as one entry with its last commit. Its files are left out.
  [ -z "$(sed -n '/^:[0-7]* 160000 /p' "$work/raw")" ] || complete=0
  if [ "$from" != "$to" ]; then
    g rev-list --objects "$to" \${base:+"^$base"}
    oids "$from" "$to"
    oids "$to" "$tree"
    if [ -n "$base" ] && [ -n "$head" ]; then
      g rev-list --boundary "$base..$head" >"$work/range"
      # Without commits since the base, the last one is older than that.
      boundary=$({ echo "$base"; sed -n 's/^-//p' "$work/range"; [ -n "$(sed -n '/^[^-]/p' "$work/range")" ] || echo "$head"; } | sort -u)
    fi
  fi
  g rev-parse "$from^{tree}" "$to^{tree}" "$tree" $boundary
  # The check of the pack on the host reads the attributes files of all its folders, also unchanged ones, and those of short names such
  # as gitatt~1.
  for each in $({ echo "$from"; echo "$to"; echo "$tree"; echo "$boundary"; } | sort -u); do
    g ls-tree -r "$each" | sed -n -e 's/^100[0-7]* blob \\([0-9a-f]*\\).*\\.[Gg][Ii][Tt][Aa][Tt][Tt][Rr].*/\\1/p' \\
      -e 's/^100[0-7]* blob \\([0-9a-f]*\\).*~[1-9].*/\\1/p'
  done
} >"$work/list"
echo "snapshot \${head:--} $tree $complete" $boundary
g pack-objects -q --stdout --window=0 <"$work/list"
`;

/**
 * Writes entries that end with NUL: one about the work tree, the files that differ from the base, an empty one, the names of the files that
 * differ from the last commit if that is not the base, an empty one, and the fields of the commits. The comparison uses its own git folder,
 * so the work tree's configuration and attributes have no effect.
 */
const listScript = `${addAll}
printf 'changes %s %s\\0' "\${head:--}" "$complete"
mkdir "$work/refs" "$work/info"
echo 'ref: refs/heads/none' >"$work/HEAD"
echo '* !diff' >"$work/info/attributes"
[ \${#from} -eq 40 ] || printf '[core]\\n\\trepositoryFormatVersion = 1\\n[extensions]\\n\\tobjectFormat = sha256\\n' >"$work/config"
compare() (
  export GIT_DIR="$work" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
  g ${diffSettings.join(' ')} diff-index --cached "$@"
)
compare ${[...diffFlags, ...listFlags].join(' ')} "$from"
printf '\\0'
if [ "$from" != "$to" ]; then compare ${nameFlags.join(' ')} "$to"; fi
printf '\\0'
if [ "$from" != "$to" ] && [ -n "$head" ]; then g log ${logFlags.map((flag) => `'${flag}'`).join(' ')} "$to" \${base:+"^$base"}; fi
`;

/** The command that takes a snapshot of the work tree in which it runs. */
export function snapshotCommand({ base, foldersOfOthers }: SnapshotRequest): readonly string[] {
  return ['/bin/sh', '-c', snapshotScript, 'snapshot', base ?? '', foldersOfOthers ?? ''];
}

/** The command that lists the changes of the work tree in which it runs. */
export function listCommand({ base, foldersOfOthers }: SnapshotRequest): readonly string[] {
  return ['/bin/sh', '-c', listScript, 'changes', base ?? '', foldersOfOthers ?? ''];
}

/** Returns the refusal for the command's exit code. Null if it succeeded. `output` is the end of its standard error. */
export function refusalOf(exitCode: number | null, output: string): SnapshotRefusal | null {
  if (exitCode === 0) return null;
  const cause = new Error(`the command ended with ${exitCode ?? 'no exit code'}: ${output}`);
  if (exitCode === exitCodes.noGit || exitCode === 126 || exitCode === 127) return new SnapshotRefusal({ code: 'git_missing' }, { cause });
  if (exitCode === exitCodes.noBase) return new SnapshotRefusal({ code: 'start_commit_missing' }, { cause });
  if (/promisor remote/u.test(output)) return new SnapshotRefusal({ code: 'history_incomplete' }, { cause });
  return new SnapshotRefusal({ code: 'snapshot_failed', exitCode, ...(output !== '' && { output }) }, { cause });
}

/** The header line before the pack. Like the pack, it is not trusted. */
export interface SnapshotHeader {
  readonly head: string | null;
  readonly tree: string;
  readonly complete: boolean;
  /** The commits whose history is not in the pack: the base, and those of its ancestors from which the agent's commits begin. */
  readonly boundary: readonly string[];
}

/** The maximum length of the header line, enough for some thousand merges. */
export const maxHeaderBytes = 256 * 1024;

/** Throws a refusal if the line is not from the script, or is about another base. */
export function parseHeader(line: string, base: string | null): SnapshotHeader {
  const [word, head = '', tree = '', complete = '', ...boundary] = line.split(' ');
  const oids = [...(head === '-' ? [] : [head]), tree, ...boundary];
  const isValid = word === 'snapshot' && /^[01]$/u.test(complete) && oids.every((oid) => oidForm.test(oid) && oid.length === tree.length);
  if (!isValid || (base === null ? boundary.length > 0 : !boundary.includes(base))) {
    throw new SnapshotRefusal({ code: 'snapshot_damaged' }, { cause: new Error('the command wrote a line of another form') });
  }
  return { head: head === '-' ? null : head, tree, complete: complete === '1', boundary };
}

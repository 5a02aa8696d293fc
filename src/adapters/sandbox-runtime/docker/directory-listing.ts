import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { extract } from 'tar-stream';
import { onAbort } from '../../../ports/abort-signals.ts';
import { Failure, isFailureOf } from '../../../domain/failure.ts';
import type { FileEntry, FileType } from '../../../domain/file-entry.ts';
import { refusedFiles } from '../sandbox-path.ts';
import { isForkError } from '../script-result.ts';
import { entryOf } from './container-files.ts';
import { unavailable } from './engine.ts';
import type { StartProgram } from './file-writer.ts';

/**
 * Prints the contents of the directory `$1`, down to the depth `$2`, as records: see {@link ListingRecord}. Each begins with the mark `$3`,
 * which no path contains. Uses only options that both GNU's and busybox's `find` and `stat` have. For both, only `%y` has fractions of
 * seconds.
 */
const listing = `
command -v find >/dev/null && command -v stat >/dev/null && cd "$1" || exit 1
export LC_ALL=C
echo "/$3"
format="/$3 %f %s %Y %u %g %y %n"
find . -maxdepth "$2" ! -type l -exec stat -c "$format" {} + -o -type l -exec sh -c '
  format=$1 mark=$2; shift 2
  for link; do stat -c "$format" "$link" && printf "/%s=" "$mark" && readlink "$link"; done' sh "$format" "$3" {} +
echo "/$3."
`;

type ListingRecord =
  /** The first mark, with an empty line: the script has begun, so the image has the programs. */
  | { readonly kind: 'begun' }
  /** A stat. The entry is null for the directory itself. */
  | { readonly kind: 'entry'; readonly entry: FileEntry | null }
  /** After `=`, the target of the link that is the entry before. */
  | { readonly kind: 'target'; readonly target: string }
  /** The last record, a dot: no entry is missing. */
  | { readonly kind: 'end' };

/**
 * Returns the entries, with relative paths, or null if the container does not run or lacks the programs. Reading them throws
 * `runtime_unavailable` if the list is incomplete.
 */
export async function entriesByProgram(
  start: StartProgram, id: string, directory: string, depth: number, signal: AbortSignal,
): Promise<AsyncIterable<FileEntry> | null> {
  const mark = `/${randomUUID()}`;
  const command = ['/bin/sh', '-c', listing, 'skep-list', directory, String(depth), mark.slice(1)];
  try {
    const execution = await start(id, command, false, signal);
    const canFork = hasNoForkError(execution.stderr);
    // A reader that leaves early does not wait for it.
    canFork.catch(() => {});
    const records = recordsOf(execution.stdout, mark, () => void execution.kill().catch(() => {}), signal);
    // The first record is `begun`. Without any record, the script has not begun.
    const { done } = await records.next();
    return done === true ? null : entriesOf(records, canFork);
  } catch (error) {
    if (isFailureOf(error, 'sandbox_not_running')) return null;
    throw error;
  }
}

/** Longer than any path. A path is the only part of a record without a fixed length. */
const maxRecordLength = 8 << 10;

/** Reads the records between the marks. Calls `kill` if the signal fires, or if the output is not read to its end. */
async function* recordsOf(
  output: ReadableStream<Uint8Array>, mark: string, kill: () => void, signal: AbortSignal,
): AsyncGenerator<ListingRecord, void> {
  let rest = '';
  let isOver = false;
  using _ = onAbort(signal, kill);
  try {
    const decoder = new TextDecoder();
    for await (const chunk of output) {
      const records = `${rest}${decoder.decode(chunk, { stream: true })}`.split(mark);
      rest = `${records.length > 1 ? mark : ''}${records.pop() ?? ''}`;
      yield* records.filter((record) => record !== '').map(parseRecord);
      if (rest.length > maxRecordLength) throw refusedFiles('path', '`find` or `stat` in the sandbox printed unexpected output');
    }
    isOver = true;
    signal.throwIfAborted();
    if (rest !== '') yield parseRecord(rest.slice(mark.length));
  } finally {
    if (!isOver) kill();
  }
}

/** More than one line of errors. */
const keptErrors = 512;

/** Other errors are expected, such as a file that was removed meanwhile. */
async function hasNoForkError(errors: ReadableStream<Uint8Array>): Promise<boolean> {
  let hasNone = true;
  let text = '';
  for await (const chunk of errors) {
    text = text.slice(-keptErrors) + Buffer.from(chunk).toString();
    hasNone &&= !isForkError(text);
  }
  return hasNone;
}

const time = String.raw`\S+ [\d:]+(?:\.(?<fraction>\d+))?(?: \S+)?`;
const stat = new RegExp(
  String.raw`^ (?<mode>[0-9a-f]+) (?<size>\d+) (?<seconds>-?\d+) (?<uid>\d+) (?<gid>\d+) ${time} \./(?<path>.*)\n$`, 's',
);
const fileTypeBits: Readonly<Record<number, FileType>> = { 0o10: 'file', 0o4: 'directory', 0o12: 'symlink' };

async function* entriesOf(records: AsyncIterable<ListingRecord>, canFork: Promise<boolean>): AsyncGenerator<FileEntry, void> {
  // An entry waits for the next record, which has its target if it is a link.
  let waiting: FileEntry | null = null;
  let isComplete = false;
  for await (const record of records) {
    if (waiting !== null) yield record.kind === 'target' ? { ...waiting, target: record.target } : waiting;
    waiting = record.kind === 'entry' ? record.entry : null;
    isComplete = record.kind === 'end';
  }
  // Without the end, the sandbox was stopped, or the connection broke.
  if (!(await canFork)) throw unavailable({ code: 'process_limit_reached' });
  if (!isComplete) throw unavailable('the sandbox could not run what lists a directory in it');
}

function parseRecord(text: string): ListingRecord {
  if (text === '\n') return { kind: 'begun' };
  if (text === '.\n') return { kind: 'end' };
  if (text.startsWith('=')) return { kind: 'target', target: text.slice(1, -1) };
  return { kind: 'entry', entry: parseStat(text) };
}

/** Null for the directory itself. */
function parseStat(text: string): FileEntry | null {
  const { mode = '', size, seconds, uid, gid, fraction = '', path } = stat.exec(text)?.groups ?? {};
  if (path === undefined) return null;
  const bits = Number.parseInt(mode, 16);
  const type = fileTypeBits[bits >> 12] ?? 'other';
  const owner = { uid: Number(uid), gid: Number(gid) };
  const modifiedAt = Number(seconds) * 1000 + Number(fraction.slice(0, 6).padEnd(6, '0')) / 1000;
  return { path, type, size: Number(size), mode: bits & 0o7777, modifiedAt, target: null, owner };
}

/** The engine also sends the contents, so a directory that exceeds this limit is not listed from its archive. */
const maxArchiveBytes = 256 << 20;
const entryBytes = 512;

/** Yields the entries by relative paths, from the archive of the directory. Throws `sandbox_not_running` if the archive is too large. */
export async function* entriesOfArchive(
  archive: IncomingMessage, id: string, directory: string, depth: number,
): AsyncGenerator<FileEntry, void> {
  const tar = archive.pipe(extract());
  archive.on('error', (error) => tar.destroy(error));
  const prefix = directory === '/' ? 0 : 1;
  let bytes = 0;
  const sizes = new Map<string, number>();
  try {
    for await (const entry of tar) {
      const { header } = entry;
      const parts = header.name.split('/').filter((part) => part !== '' && part !== '.').slice(prefix);
      bytes += entryBytes + header.size;
      if (bytes > maxArchiveBytes) throw new Failure('sandbox_not_running', { id, status: 'not running' });
      entry.resume();
      if (header.type === 'file') sizes.set(header.name, header.size);
      // The engine packs the size only with the first name of a file.
      const size = header.type === 'link' ? (sizes.get(header.linkname ?? '') ?? 0) : header.size;
      if (parts.length > 0 && parts.length <= depth) yield entryOf({ ...header, size }, posix.join(...parts));
    }
  } finally {
    archive.destroy();
  }
}

import { failed } from './failures.ts';
import { etagOf, readHead } from './head.ts';
import type { Known, KnownFile } from './known.ts';
import type { KnownRepository } from './schema.ts';
import type { Opened, Source, TreeFile } from './source.ts';
import type { Transport } from './transport.ts';

/** A directory of a repository's head. */
export interface Listed {
  /** The last segment of the repository's actual path. */
  readonly name: string;
  readonly directory: string;
  /** Those that are wanted have a date. */
  readonly files: readonly KnownFile[];
}

export interface ListRequest {
  /** As it was asked for. */
  readonly repository: string;
  /** The directory to look below, by the last segment of the repository's actual path. */
  readonly directoryOf: (name: string) => string;
  /** Does somebody need the date of the file? */
  readonly wants: (directory: string, path: string) => boolean;
}

export interface ListingsOptions {
  readonly transport: Transport;
  readonly source: Source;
  readonly known: Known;
  readonly now: () => number;
  /** Is it of use to know when something was last confirmed, if nothing else has changed? */
  readonly notesConfirmations: boolean;
}

/** Lists directories, asking only for what is not known yet. */
export function createListings({ transport, source, known, now, notesConfirmations }: ListingsOptions) {
  /** What is known of the repository, if the host confirms that its head is still the same; null where it does not. */
  async function confirm(repository: string, last: KnownRepository, signal: AbortSignal): Promise<KnownRepository | null> {
    const etag = last.head === null ? null : (last.etag ?? etagOf(last.head));
    const head = await readHead(transport, repository, etag, signal);
    const confirmed = { ...last, confirmedAt: now() };
    if (head.kind === 'same') return confirmed;
    if (head.kind === 'empty') return { ...confirmed, head: null, etag: null };
    return head.kind === 'commit' && head.oid === last.head ? { ...confirmed, etag: head.etag } : null;
  }

  async function confirmed(request: ListRequest, last: KnownRepository, signal: AbortSignal): Promise<Listed | null> {
    const { repository, directoryOf } = request;
    const still = await confirm(repository, last, signal);
    if (still === null) return null;
    const directory = directoryOf(still.name);
    const files = still.head === null ? [] : await known.files(still.head, directory);
    if (files === null) return null;
    const dated = still.head === null ? files : await date(request, { ...still, head: still.head, directory }, files, files, signal);
    const changed = still.head !== last.head || still.etag !== last.etag;
    if (changed || notesConfirmations) await known.putRepository(repository, still);
    return { name: still.name, directory, files: dated };
  }

  async function opened(request: ListRequest, last: KnownRepository | null, signal: AbortSignal): Promise<Listed> {
    const { repository, directoryOf } = request;
    const found = await source.open({ repository, directoryOf, earlier: last?.head ?? null }, signal);
    const { path, name, head, directory } = found;
    let files: readonly KnownFile[] = [];
    if (head !== null) {
      const before = await known.files(head, directory);
      const dateOf = datesIn(before ?? (await inherited(found, last?.head ?? null, signal)));
      const all = found.files.map((file) => ({ ...file, createdAt: dateOf(file) }));
      files = await date(request, { path, head, directory }, all, before, signal);
    }
    await known.putRepository(repository, { path, name, head, etag: null, confirmedAt: now() });
    return { name, directory, files };
  }

  /**
   * The files of an earlier commit that the head descends from: what has the same content still has the same first
   * commit. History that was rewritten says nothing of the new one.
   */
  async function inherited(found: Opened, earlier: string | null, signal: AbortSignal): Promise<readonly KnownFile[]> {
    if (earlier === null || earlier === found.head) return [];
    const files = (await known.files(earlier, found.directory)) ?? [];
    const dateOf = datesIn(files);
    const useful = found.files.some((file) => dateOf(file) !== null);
    return useful && (await found.descends(signal)) ? files : [];
  }

  /** Finds the dates that are wanted and not known, and keeps them. */
  async function date(
    request: ListRequest,
    { path, head, directory }: { readonly path: string; readonly head: string; readonly directory: string },
    files: readonly KnownFile[],
    before: readonly KnownFile[] | null,
    signal: AbortSignal,
  ): Promise<readonly KnownFile[]> {
    const undated = files.filter((file) => file.createdAt === null && request.wants(directory, file.path));
    if (undated.length === 0 && before !== null) return files;
    const wanted = undated.map((file) => file.path);
    const dates = wanted.length === 0 ? new Map<string, number>() : await source.datesOf({ path, head, files: wanted }, signal);
    const lost = new Set(wanted.filter((file) => !dates.has(file)));
    if ([...lost].some((file) => !isDamaged(file))) throw failed('it knows no history of a file that it lists');
    const dated = files
      .filter((file) => !lost.has(file.path))
      .map((file) => ({ ...file, createdAt: file.createdAt ?? dates.get(file.path) ?? null }));
    await known.putFiles(head, directory, dated);
    return dated;
  }

  return {
    async list(request: ListRequest, signal: AbortSignal): Promise<Listed> {
      const last = await known.repository(request.repository);
      const same = last === null || isRenamed(request.repository, last) ? null : await confirmed(request, last, signal);
      return same ?? (await opened(request, last, signal));
    },
    /** What was known at the last confirmation, if that is not older than `maxAgeMs`. */
    async recall(request: ListRequest, maxAgeMs: number): Promise<(Listed & { readonly confirmedAt: number }) | null> {
      const last = await known.repository(request.repository);
      if (last === null || now() - last.confirmedAt > maxAgeMs) return null;
      const directory = request.directoryOf(last.name);
      const files = last.head === null ? [] : await known.files(last.head, directory);
      return files === null ? null : { name: last.name, directory, files, confirmedAt: last.confirmedAt };
    },
  };
}

/** Of a repository that has another name, the name can change again while the head stays the same. */
function isRenamed(repository: string, { path }: KnownRepository): boolean {
  return repository.toLowerCase() !== path.toLowerCase();
}

/** A path that is not UTF-8, in which the host has replaced what it could not tell: its history can't be asked for. */
function isDamaged(path: string): boolean {
  return path.includes('\u{fffd}');
}

/** Finds the date of a file that has the same path and content. */
function datesIn(files: readonly KnownFile[]): (file: TreeFile) => number | null {
  const byPath = new Map(files.map((file) => [file.path, file]));
  return ({ path, oid }) => {
    const known = byPath.get(path);
    return known?.oid === oid ? known.createdAt : null;
  };
}

import type { FileEntry } from '../domain/file-entry.ts';

/** The fields by which two versions of a file differ. */
export type FileVersion = Pick<FileEntry, 'size' | 'modifiedAt'>;

/** A part of a file, in bytes. If it reaches beyond the end, the file is read up to its end. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

export interface FileReading {
  /** The file that is read, after links were followed, but with the requested path. */
  readonly file: FileEntry;
  /** The bytes of the range. Cancelling it ends the work. */
  readonly content: ReadableStream<Uint8Array>;
}

export interface WriteOptions {
  /** The permission bits. Default: those of the file that is replaced, or 0o644. */
  readonly mode?: number;
  /** The length of the content, if known. Without it, some runtimes can't write a large file in a sandbox that does not run. */
  readonly size?: number;
  /**
   * Called with the file at the path, or null, before the content is read, and again before the file is replaced. Between the second call
   * and the replacement, no other write of this process replaces it. If it throws, the write fails with that error.
   */
  readonly check?: (file: FileVersion | null) => void;
}

/**
 * The files of sandboxes, as the programs of a sandbox see them. Paths are absolute and have no `..`. Links in a path are followed, and no
 * path leads out of the sandbox. A loop of links leads to no file. Written files belong to the user that the sandbox's programs run as.
 *
 * No method wakes a sandbox or changes its state: it may be running, frozen or stopped. If a runtime can do something only in a running
 * sandbox, the call fails with `sandbox_not_running` in the others. Content is streamed, never collected in memory. If `signal` fires, the
 * call or the stream fails with the signal's reason.
 *
 * Failures of all methods: `sandbox_not_found`, `sandbox_not_running`, `file_not_found`, `wrong_file_type` (the type of the entry at the
 * path, or above it, does not allow this), `invalid_request` (the path is invalid, or may not be written to), `runtime_unavailable`,
 * `runtime_timeout`.
 */
export interface SandboxFiles {
  /**
   * Returns the entry at the path. A link at the path itself is followed only if `followLink` is true. The owner of a link's target may be
   * null.
   */
  stat(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<FileEntry>;

  /** Reads a file. Follows links. Before the read, `choose` is called with the file and returns the part to read. */
  read(id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal): Promise<FileReading>;

  /**
   * Writes a file, and creates missing parent directories. A link at the path is followed, or replaced if its target does not exist. A
   * directory, pipe, socket or device is not replaced. A reader gets the complete old or the complete new content. If the content fails,
   * the old file stays, and no other file is left behind. Returns the new file. In every case the content is read to its end or cancelled;
   * nothing waits for the end of the cancellation. The removal of the sandbox ends the write.
   */
  write(id: string, path: string, content: ReadableStream<Uint8Array>, options: WriteOptions, signal: AbortSignal): Promise<FileEntry>;

  /** Creates a directory and missing parents. Returns false if it exists already. */
  makeDirectory(id: string, path: string, signal: AbortSignal): Promise<boolean>;

  /**
   * Removes the entry at the path: a link itself, not its target. A directory is removed, with its content, only if `recursive` is true.
   */
  remove(id: string, path: string, recursive: boolean, signal: AbortSignal): Promise<void>;

  /** Moves a file, link or directory atomically, and creates missing parents. Replaces an existing file or link, and nothing else. */
  move(id: string, from: string, to: string, signal: AbortSignal): Promise<void>;

  /**
   * Yields the entries of a directory (depth 1), their entries (2), and so on, in no order. Follows links in the path, but not below the
   * directory. Entries that come or go meanwhile may be missing. The work begins when the first entry is requested.
   */
  list(id: string, path: string, depth: number, signal: AbortSignal): AsyncIterable<FileEntry>;
}

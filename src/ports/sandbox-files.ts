import type { FileEntry } from '../domain/file-entry.ts';

/** A part of a file, in bytes. It may reach beyond the end: what is there is read. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

export interface FileReading {
  /** The file that is read, links followed. */
  readonly file: FileEntry;
  /** The bytes of the range. Cancelling it ends the work. */
  readonly content: ReadableStream<Uint8Array>;
}

export interface WriteOptions {
  /** The permission bits. Default: those of the file that is replaced, or 0o644. */
  readonly mode?: number;
  /** The length of the content, if it is known. Only then can every runtime write a large file in a sandbox that does not run. */
  readonly size?: number;
}

/**
 * The files of sandboxes, as the programs of a sandbox see them. Paths are absolute. Links in a path are followed, and no path leads out
 * of the sandbox. What is written belongs to the user that the sandbox's programs run as.
 *
 * Nothing here wakes a sandbox or changes its state: it may run, be frozen or be stopped. What a runtime can only do in a running one
 * fails with `sandbox_not_running` in the others. Content is streamed, never gathered. When `signal` fires, the call or the stream fails
 * with the signal's reason.
 *
 * Failures of all methods: `sandbox_not_found`, `sandbox_not_running`, `file_not_found`, `wrong_file_type` (what is at the path, or above
 * it, is of a type with which that can't be done), `invalid_request` (the path, or its place may not be written to),
 * `runtime_unavailable`, `runtime_timeout`.
 */
export interface SandboxFiles {
  /** Returns what is at the path. A link at the path itself is followed only if asked to. */
  stat(id: string, path: string, followLink: boolean, signal: AbortSignal): Promise<FileEntry>;

  /**
   * Reads a file, links followed. `choose` is called with what is there, before anything is read, and returns the part to read.
   */
  read(id: string, path: string, choose: (file: FileEntry) => ByteRange, signal: AbortSignal): Promise<FileReading>;

  /**
   * Writes a file, and makes missing directories above it. A link at the path is followed. Whoever reads the path gets the old content or
   * the new one, whole. If the content fails, the old file stays, and no other one is left behind. Returns what is there then. However it
   * ends, the content is read to its end or cancelled.
   */
  write(id: string, path: string, content: ReadableStream<Uint8Array>, options: WriteOptions, signal: AbortSignal): Promise<FileEntry>;

  /** Makes a directory, and missing ones above it. Returns false if it is there already. */
  makeDirectory(id: string, path: string, signal: AbortSignal): Promise<boolean>;

  /** Removes what is at the path: a link itself, and a directory, if asked to, with all that is in it. Otherwise a directory stays. */
  remove(id: string, path: string, recursive: boolean, signal: AbortSignal): Promise<void>;

  /** Gives a file, link or directory another path, at one moment. A file or link that is there is replaced; nothing else is. */
  move(id: string, from: string, to: string, signal: AbortSignal): Promise<void>;

  /**
   * Yields what is in a directory, links followed, in no order: its entries (depth 1), theirs (2), and so on. Links below it are not
   * followed. What comes or goes meanwhile may be missing. It begins when the first one is asked for.
   */
  list(id: string, path: string, depth: number, signal: AbortSignal): AsyncIterable<FileEntry>;
}

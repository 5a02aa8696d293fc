/** `other` is a device, a pipe or a socket. */
export const fileTypes = ['file', 'directory', 'symlink', 'other'] as const;

export type FileType = (typeof fileTypes)[number];

/** What is at a path of a sandbox. */
export interface FileEntry {
  /** Absolute, without superfluous parts. What is not UTF-8 in it is replaced, so such a file can be listed, and not be read by name. */
  readonly path: string;
  readonly type: FileType;
  /** The length of a file in bytes. Of anything else it means nothing. */
  readonly size: number;
  /** The permission bits, 0 to 0o7777. */
  readonly mode: number;
  /** In milliseconds since the epoch, with fractions as far as the runtime knows them. */
  readonly modifiedAt: number;
  /** Where a symbolic link leads to, as it is written in the link; null for anything else. */
  readonly target: string | null;
  /** Null if the runtime does not know it. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/** `other` is a device, a pipe or a socket. */
export const fileTypes = ['file', 'directory', 'symlink', 'other'] as const;

export type FileType = (typeof fileTypes)[number];

/** The file, directory or other entry at a path of a sandbox. */
export interface FileEntry {
  /** Absolute and normalised. Bytes that are not UTF-8 are replaced, so such a file can be listed, but not read by name. */
  readonly path: string;
  readonly type: FileType;
  /** The length of a file in bytes. Has no meaning for other types. */
  readonly size: number;
  /** The permission bits, 0 to 0o7777. */
  readonly mode: number;
  /** In milliseconds since the epoch, with fractions if the runtime knows them. */
  readonly modifiedAt: number;
  /** Where a symbolic link leads to, as it is written in the link; null for anything else. */
  readonly target: string | null;
  /** Null if the runtime does not know it. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

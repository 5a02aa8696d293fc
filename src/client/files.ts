import type { CallOptions, Connection } from './connection.ts';
import type { FileEntry, Operations } from './openapi.ts';

type Content = Operations['PUT /api/v1/sandboxes/{id}/files']['body'];

export interface ReadOptions extends CallOptions {
  /** The offset of the first byte. */
  readonly from?: number | undefined;
  /** The offset of the last byte. */
  readonly to?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** The permission bits in octal: `0644`. */
  readonly mode?: string | undefined;
  /** An `ETag` of `read` or `write`. If the file has another one by now, it is not replaced, and the failure is `precondition_failed`. */
  readonly ifMatch?: string | undefined;
  /** With `*`, an existing file is not replaced, and the failure is `precondition_failed`. */
  readonly ifNoneMatch?: '*' | undefined;
}

export interface WrittenFile extends FileEntry {
  readonly etag: string;
}

/** The files of one sandbox. Paths are absolute. */
export class Files {
  readonly #connection: Connection;
  readonly #sandboxId: string;

  constructor(connection: Connection, sandboxId: string) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
  }

  /** Returns the response with the bytes. Use `.text()`, `.bytes()`, or `.body` for large files. */
  async read(path: string, { from, to, ...options }: ReadOptions = {}): Promise<Response> {
    const range = from === undefined && to === undefined ? undefined : `bytes=${from ?? 0}-${to ?? ''}`;
    return await this.#connection.stream('GET /api/v1/sandboxes/{id}/files', { ...this.#at({ path }, options), headers: { Range: range } });
  }

  /** Replaces the file by the content, completely or not at all. */
  async write(path: string, content: string | Content, options: WriteOptions = {}): Promise<WrittenFile> {
    const { mode, ifMatch, ifNoneMatch, ...rest } = options;
    const body = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const input = { ...this.#at({ path, mode }, rest), body, headers: { 'If-Match': ifMatch, 'If-None-Match': ifNoneMatch } };
    const response = await this.#connection.stream('PUT /api/v1/sandboxes/{id}/files', input);
    return { ...(await response.json() as FileEntry), etag: response.headers.get('ETag') ?? '' };
  }

  async remove(path: string, { recursive = false, ...options }: CallOptions & { readonly recursive?: boolean } = {}): Promise<void> {
    await this.#connection.request('DELETE /api/v1/sandboxes/{id}/files', this.#at({ path, recursive }, options));
  }

  /** Yields the content of a directory, ordered by path, down to `depth` levels. */
  list(path: string, { depth, ...options }: CallOptions & { readonly depth?: number } = {}): AsyncGenerator<FileEntry, void> {
    return this.#connection.items('GET /api/v1/sandboxes/{id}/directories', this.#at({ path, depth }, options));
  }

  /** Creates a directory and its missing parents. */
  async makeDirectory(path: string, options: CallOptions = {}): Promise<FileEntry> {
    return await this.#connection.request('POST /api/v1/sandboxes/{id}/directories', this.#at({ path }, options));
  }

  /** Returns the response with a directory as a tar. */
  async readArchive(path: string, options: CallOptions = {}): Promise<Response> {
    return await this.#connection.stream('GET /api/v1/sandboxes/{id}/archive', this.#at({ path }, options));
  }

  /** Unpacks a tar into a directory. */
  async writeArchive(path: string, tar: Content, options: CallOptions = {}): Promise<void> {
    await this.#connection.request('PUT /api/v1/sandboxes/{id}/archive', { ...this.#at({ path }, options), body: tar });
  }

  #at<Q>(query: Q, options: CallOptions) {
    return { path: { id: this.#sandboxId }, query, ...options };
  }
}

import { posix } from 'node:path';
import { Failure } from '../../../src/domain/failure.ts';

/** An entry in the file system of a sandbox in memory. A file with two names is one object. */
export type MemoryNode =
  | { readonly kind: 'directory'; readonly mode: number; readonly modifiedAt: Date }
  | { readonly kind: 'file'; readonly mode: number; readonly modifiedAt: Date; readonly content: Uint8Array }
  | { readonly kind: 'symlink'; readonly mode: number; readonly modifiedAt: Date; readonly target: string };

const maxLinks = 16;

/**
 * The files of a sandbox in memory, by their paths. Relative paths are below its working directory. Kept until the sandbox is
 * removed.
 */
export class MemoryFiles {
  readonly #nodes = new Map<string, MemoryNode>();
  readonly #workingDir: string;

  constructor(workingDir: string) {
    this.#workingDir = workingDir;
    this.makeDirectory(workingDir);
  }

  /** Returns the text of a file. Follows links. */
  get(name: string): string | undefined {
    const node = this.#follow(this.#resolve(name));
    return node?.kind === 'file' ? new TextDecoder().decode(node.content) : undefined;
  }

  /** Writes the text of a file. Follows links, and creates missing parent directories. */
  set(name: string, text: string): void {
    let path = this.#resolve(name);
    for (let links = 0, node = this.node(path); node?.kind === 'symlink' && links < maxLinks; links += 1, node = this.node(path)) {
      path = posix.resolve(posix.dirname(path), node.target);
    }
    const { mode = 0o644 } = this.node(path) ?? {};
    this.put(path, { kind: 'file', mode, modifiedAt: new Date(), content: new TextEncoder().encode(text) });
  }

  has(name: string): boolean {
    return this.#follow(this.#resolve(name)) !== undefined;
  }

  isDirectory(path: string): boolean {
    return path === '/' || this.#follow(path)?.kind === 'directory';
  }

  /** Returns the node at an absolute path, without following a link. */
  node(path: string): MemoryNode | undefined {
    return this.#nodes.get(path);
  }

  /** Puts the node at an absolute path, replaces an existing one, and creates missing parent directories. */
  put(path: string, node: MemoryNode): void {
    this.makeDirectory(posix.dirname(path));
    this.#nodes.set(path, node);
  }

  makeDirectory(path: string): void {
    if (path === '/' || this.#nodes.has(path)) return;
    this.put(path, { kind: 'directory', mode: 0o755, modifiedAt: new Date() });
  }

  /** Removes the node at an absolute path and everything below it. */
  delete(path: string): void {
    for (const one of this.below(path)) this.#nodes.delete(one);
  }

  /** Resolves the links above the path, and on request the path itself, as far as their targets exist. */
  realPath(path: string, followLink: boolean, links = 0): string {
    if (path === '/') return path;
    const real = posix.join(this.realPath(posix.dirname(path), true, links), posix.basename(path));
    const node = this.node(real);
    if (node?.kind !== 'symlink' || !followLink) return real;
    if (links >= maxLinks) throw new Failure('file_not_found', { path });
    const target = this.realPath(posix.resolve(posix.dirname(real), node.target), true, links + 1);
    return target === '/' || this.node(target) !== undefined ? target : real;
  }

  /** Returns the path and all paths below it, in order. */
  below(path: string): string[] {
    return [...this.#nodes.keys()].filter((one) => one === path || one.startsWith(`${path}/`)).toSorted();
  }

  #resolve(name: string): string {
    return posix.resolve(this.#workingDir, name);
  }

  #follow(path: string, links = 0): MemoryNode | undefined {
    const node = this.#nodes.get(path);
    if (node?.kind !== 'symlink') return node;
    return links < maxLinks ? this.#follow(posix.resolve(posix.dirname(path), node.target), links + 1) : undefined;
  }
}

import type { Confined } from './confined.ts';

/** A repository in the file system; all paths are real ones inside the root. */
export interface LocalRepository {
  /** The last segment of its path, without `.git`. */
  readonly name: string;
  /** Its path below the root. */
  readonly path: string;
  /** Where its own HEAD is. */
  readonly gitDir: string;
  /** Where its branches and objects are: another folder than `gitDir` for a linked work tree. */
  readonly commonDir: string;
  readonly root: Confined;
}

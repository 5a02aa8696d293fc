import { bindUseCases, type Bound } from '../use-cases.ts';
import type { FileDeps } from './file-access.ts';
import { listDirectory } from './list-directory.ts';
import { makeDirectory } from './make-directory.ts';
import { moveFile } from './move-file.ts';
import { readArchive } from './read-archive.ts';
import { readFile } from './read-file.ts';
import { removeFile } from './remove-file.ts';
import { statFile } from './stat-file.ts';
import { writeArchive } from './write-archive.ts';
import { writeFile } from './write-file.ts';

const useCases = {
  stat: statFile,
  read: readFile,
  write: writeFile,
  remove: removeFile,
  move: moveFile,
  list: listDirectory,
  makeDirectory,
  readArchive,
  writeArchive,
};

/**
 * The use cases of files in sandboxes. Each takes the caller's scope; sandboxes outside the scope are not found. They do not wake the
 * sandbox. If it is paused and its runtime cannot reach the files then, they throw `sandbox_not_running`.
 */
export type Files = Bound<typeof useCases>;

export function createFiles(deps: FileDeps): Files {
  return bindUseCases(deps, useCases);
}

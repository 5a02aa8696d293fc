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
 * The use cases of files in sandboxes. Each takes whose sandboxes the caller sees: others do not exist for it. They wake nothing: files of
 * a paused sandbox are read and written as far as its runtime can do that; otherwise they throw `sandbox_not_running`.
 */
export type Files = Bound<typeof useCases>;

export function createFiles(deps: FileDeps): Files {
  return bindUseCases(deps, useCases);
}

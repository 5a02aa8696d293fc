import { join } from 'node:path';
import { partsBelow, quoted, refusedFiles } from '../../sandbox-path.ts';

/** Where programs find the workspace when the launch does not say. */
const usualWorkingDir = '/workspace';

/** The host's folder of a sandbox's own files, and what its programs know it as. */
export interface Workspace {
  readonly folder: string;
  readonly workingDir: string | undefined;
}

/**
 * What of a path lies in the workspace, part by part; the workspace's own path on the host is understood as well. Throws
 * `invalid_request` for any other: the rest of the host is not the sandbox's.
 */
export function workspaceParts(path: string, workspace: Workspace, member: 'path' | 'directory'): readonly string[] {
  const parts = partsIn(workspace, path);
  if (parts !== null) return parts;
  throw refusedFiles(member, `${quoted(path)} is not the sandbox's own, which shares this host; choose a place below ${quoted(workspace.workingDir ?? usualWorkingDir)}`);
}

/** Where a program of the sandbox finds the path: without isolation, all of the host can be seen. */
export function hostPath(path: string, workspace: Workspace): string {
  const parts = partsIn(workspace, path);
  return parts === null ? path : join(workspace.folder, ...parts);
}

function partsIn({ folder, workingDir = usualWorkingDir }: Workspace, path: string): readonly string[] | null {
  return partsBelow(folder, path) ?? partsBelow(workingDir, path);
}

import { posix } from 'node:path';
import type Docker from 'dockerode';
import type { Inside } from './inside.ts';

const enginePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Is the program there that a container is to run, and is it one? The container's own first process would only exit with 127. */
export async function canRun({ Path: program, Config }: Docker.ContainerInspectInfo, inside: Inside): Promise<boolean> {
  const workingDir = Config.WorkingDir === '' ? '/' : Config.WorkingDir;
  const path = Config.Env.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length) ?? enginePath;
  const candidates = program.includes('/')
    ? [posix.resolve(workingDir, program)]
    : path.split(':').map((folder) => posix.resolve(workingDir, folder, program));
  for (const candidate of candidates) {
    const mode = await inside.permissions(candidate);
    if (mode !== null && (mode & 0o111) !== 0) return true;
  }
  return false;
}

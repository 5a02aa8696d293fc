import { execFileSync } from 'node:child_process';

/** Returns the oldest Node that is installed. The tests themselves may run on a newer one. */
export function oldestNode(): string {
  const versions = execFileSync('which', ['-a', 'node'], { encoding: 'utf8' }).trim().split('\n').map((path) => {
    return { path, major: Number(execFileSync(path, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' })) };
  });
  return versions.toSorted((a, b) => a.major - b.major)[0]?.path ?? process.execPath;
}

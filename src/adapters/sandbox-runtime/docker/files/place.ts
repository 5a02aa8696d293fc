import { posix } from 'node:path';
import type Docker from 'dockerode';
import { partsBelow, quoted, refusedFiles } from '../../sandbox-path.ts';
import type { Stat } from './stat.ts';

/** Where an archive is unpacked. */
export interface Place {
  /** The part of the directory that is there. */
  readonly existing: string;
  /** The names of the directories below it that have to be made, from the outermost on. */
  readonly missing: readonly string[];
}

/** Throws `invalid_request` where something else than a directory is in the way. */
export async function findPlace(directory: string, stat: Stat): Promise<Place> {
  const missing: string[] = [];
  for (let at = directory; ; at = posix.dirname(at)) {
    const found = at === '/' ? { kind: 'directory' as const, linkTarget: '' } : await stat(at);
    if (found === null) {
      missing.unshift(posix.basename(at));
      continue;
    }
    const target = found.kind === 'link' ? await stat(found.linkTarget) : found;
    if (target?.kind !== 'directory') throw refusedFiles('directory', `${quoted(at)} is there, and is not a directory`);
    return { existing: found.kind === 'link' ? found.linkTarget : at, missing };
  }
}

/** What the kernel makes up, and a container's programs see in place of what the engine reads and writes. */
const madeUp = ['/proc', '/sys', '/dev'];

/** Throws `invalid_request` where the engine can't reach what the container's programs see at the path. */
export function demandReachable({ HostConfig, Mounts }: Docker.ContainerInspectInfo, path: string, member: 'path' | 'directory'): void {
  const inMemory = [
    ...Object.keys(HostConfig.Tmpfs ?? {}),
    ...(HostConfig.Mounts ?? []).flatMap(({ Type, Target }) => (Type === 'tmpfs' ? [Target] : [])),
  ];
  if (![...madeUp, ...inMemory].some((mount) => isBelow(mount, path))) return;
  // A volume below it is reached again.
  if (Mounts.some(({ Destination, Type }) => Type !== 'tmpfs' && isBelow(Destination, path))) return;
  throw refusedFiles(member, `${quoted(path)} is kept in memory, where the engine reads and writes no files; choose another one, below the working directory`);
}

/** May nothing be written at the path? */
export function isReadOnly({ HostConfig, Mounts }: Docker.ContainerInspectInfo, path: string): boolean {
  const [mount] = Mounts.filter(({ Destination }) => isBelow(Destination, path)).toSorted((one, other) => other.Destination.length - one.Destination.length);
  return mount === undefined ? HostConfig.ReadonlyRootfs === true : !mount.RW;
}

function isBelow(directory: string, path: string): boolean {
  return partsBelow(directory, path) !== null;
}

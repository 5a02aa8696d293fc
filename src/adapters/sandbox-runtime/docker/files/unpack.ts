import type Docker from 'dockerode';
import { quoted, partsBelow, refusedFiles } from '../../sandbox-path.ts';
import { tarEntries, type TarEntry } from '../../tar-entries.ts';
import type { Connection } from '../connect.ts';
import { withHelper } from '../sandbox/helper.ts';
import { lookInside } from '../sandbox/inside.ts';
import { resolveOwner } from '../sandbox/owner.ts';
import { demandReachable, findPlace, isReadOnly } from './place.ts';
import { sendInParts } from './send.ts';
import { statIn } from './stat.ts';
import { createTree } from './tree.ts';

export interface Unpacking {
  readonly connection: Connection;
  readonly container: Docker.ContainerInspectInfo;
  readonly id: string;
  readonly directory: string;
  readonly archive: ReadableStream<Uint8Array>;
  readonly signal: AbortSignal;
}

export async function unpack({ connection, container, id, directory, archive, signal }: Unpacking): Promise<void> {
  const stat = statIn(connection, container.Id);
  const { existing, missing } = await findPlace(directory, stat);
  demandReachable(container, existing, 'directory');
  if (isReadOnly(container, existing)) {
    throw refusedFiles('directory', `${quoted(directory)} is read-only in this sandbox; choose a directory below ${quoted(container.Config.WorkingDir)}`);
  }
  const inside = lookInside(connection, container.Id);
  const owner = (await resolveOwner(container.Config.User, (path) => inside.read(path))) ?? { uid: 0, gid: 0 };
  const place = [...partsOf(existing), ...missing];
  const demandEntry = ({ parts }: TarEntry): void => demandReachable(container, `/${[...place, ...parts].join('/')}`, 'directory');

  // From the root, since the engine takes a link that leads out of where it unpacks for an attack.
  const send = (target: string, below: readonly string[]): Promise<void> =>
    sendInParts({
      connection,
      container: target,
      entries: (ended) => tarEntries(archive, ended),
      demandEntry,
      tree: createTree(`/${place.join('/')}`, missing.length > 0, stat),
      below,
      missing: missing.length,
      owner,
      signal,
    });
  // The engine unpacks nothing at a root that is read-only; the volumes are those of another container as well.
  if (container.HostConfig.ReadonlyRootfs === true) await withHelper(connection, container, id, (helper, targetOf) => send(helper, moved(place, container, targetOf)));
  else await send(container.Id, place);
}

function partsOf(path: string): readonly string[] {
  return partsBelow('/', path) ?? [];
}

/** Where a place in a volume of the container is in its helper. */
function moved(place: readonly string[], { HostConfig }: Docker.ContainerInspectInfo, targetOf: (path: string) => string): readonly string[] {
  for (const { Target } of HostConfig.Mounts ?? []) {
    const below = partsBelow(Target, `/${place.join('/')}`);
    if (below !== null) return [...partsOf(targetOf(Target)), ...below];
  }
  return place;
}

import { z } from 'zod';
import type { DiskSpace } from '../../../domain/disk-pressure.ts';
import { diskSpaceOf } from '../../shared/disk-space.ts';
import type { Engine } from './engine.ts';

const Info = z.object({ DockerRootDir: z.string() });

/** Returns the space of the disk that an engine on this machine uses. Null if its folder can't be seen, as from within a container. */
export async function diskSpace({ docker, call }: Engine): Promise<DiskSpace | null> {
  const { data } = Info.safeParse(await call(() => docker.info()));
  return data === undefined ? null : await diskSpaceOf(data.DockerRootDir).catch(() => null);
}

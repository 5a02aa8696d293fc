import { statfs } from 'node:fs/promises';
import type { DiskSpace } from '../../domain/disk-pressure.ts';

export async function diskSpaceOf(folder: string): Promise<DiskSpace> {
  const { blocks, bfree, bavail, bsize } = await statfs(folder);
  return { totalBytes: (blocks - bfree + bavail) * bsize, freeBytes: bavail * bsize };
}

import { join } from 'node:path';
import { failed } from './failures.ts';
import type { LocalRepository } from './repository.ts';

const limitBytes = 4 * 1024 * 1024;

/** The commits at which a shallow clone's history is cut off, as git keeps them; empty for a complete history. */
export async function readShallow({ root, commonDir }: LocalRepository): Promise<string> {
  const content = (await root.read(join(commonDir, 'shallow'), limitBytes))?.toString('latin1') ?? '';
  if (!/^(?:[0-9a-f]{40,64}(?:\n|$))*$/u.test(content)) throw failed("the repository's list of shallow commits is broken");
  return content;
}

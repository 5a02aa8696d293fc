import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { RepositoryCheckouts } from '../../../ports/repository-checkouts.ts';
import type { SkepOptions } from '../../options.ts';

/** Opens what brings repositories to this host: into the data folder, or, where there is none, a folder that goes with the deployment. */
export async function openCheckouts({ checkouts, dataDir }: SkepOptions, closers: AsyncDisposableStack): Promise<RepositoryCheckouts> {
  if (checkouts !== undefined) return checkouts;
  const { createGitMirror } = await import('../../../adapters/repository-checkouts/git-mirror/index.ts');
  const opened = createGitMirror({ root: dataDir === undefined ? await temporaryRoot(closers) : join(resolve(dataDir), 'repositories') });
  closers.defer(() => opened.close());
  return opened;
}

async function temporaryRoot(closers: AsyncDisposableStack): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'skep-repositories-'));
  closers.defer(() => rm(root, { recursive: true, force: true }));
  return root;
}

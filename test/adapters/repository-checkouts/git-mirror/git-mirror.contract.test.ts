import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'vitest';
import { createGitMirror } from '../../../../src/adapters/repository-checkouts/git-mirror/index.ts';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import { hostDependentCases, repositoryCheckoutsContract } from '../../../contracts/repository-checkouts.ts';
import { checkoutCases, type RepositoryCheckoutsHarness } from '../../../contracts/repository-checkouts-harness.ts';
import { startGitHttp } from '../../../doubles/git-http/index.ts';
import { authorization } from './support.ts';

/** Copies a repository to the folder that is served. */
async function place(served: string, gitDir: string, name: string): Promise<void> {
  const folder = join(served, `${name}.git`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await cp(gitDir, folder, { recursive: true });
}

async function overHttp(): Promise<RepositoryCheckoutsHarness> {
  const root = await mkdtemp(join(tmpdir(), 'skep-git-mirror-'));
  const host = await startGitHttp({ root: join(root, 'served'), authorization });
  const checkouts = createGitMirror({ root: join(root, 'mirrors') });
  const source = async (name: string) => {
    return { provider: 'github', repository: name, remote: { url: `${host.url}/${name}.git`, authorization } };
  };
  return {
    checkouts,
    traits: { workTree: 'git', origin: 'named', access: 'guarded' },
    async publish(gitDir, name) {
      await place(join(root, 'served'), gitDir, name);
      return await source(name);
    },
    missing: source,
    async refused(name, what) {
      const before = host.interceptor;
      host.interceptor = async (request, response) => {
        if (!request.path.startsWith(`/${name}.git/`)) return (await before?.(request, response)) ?? false;
        response.writeHead(what === 'credential' ? 401 : 403).end(`${request.authorization} may not`);
        return true;
      };
      return await source(name);
    },
    async close() {
      await checkouts.close();
      await host.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function overFolders(): Promise<RepositoryCheckoutsHarness> {
  const root = await mkdtemp(join(tmpdir(), 'skep-git-mirror-'));
  const served = join(root, 'served');
  const provider = createLocalGitProvider({ root: served, temporaryFolder: root });
  const checkouts = createGitMirror({ root: join(root, 'mirrors') });
  return {
    checkouts,
    traits: { workTree: 'git', origin: 'none', access: 'open' },
    async publish(gitDir, name) {
      await place(served, gitDir, name);
      return { provider: 'local', repository: name, remote: await provider.remote(name) };
    },
    missing: async (name) => ({ provider: 'local', repository: name, remote: { url: join(served, name), authorization: null } }),
    refused: () => Promise.reject(new Error('nobody refuses a folder')),
    async close() {
      await checkouts.close();
      await provider.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

describe.each([
  ['a host', repositoryCheckoutsContract(overHttp)],
  ['the local provider', checkoutCases(overFolders, hostDependentCases)],
] as const)('Checkout contract: git-mirror with repositories of %s', (_, cases) => {
  for (const { name, run } of cases) test(name, run);
});

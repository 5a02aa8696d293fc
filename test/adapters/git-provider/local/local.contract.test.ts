import { cp, mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'vitest';
import { createLocalGitProvider } from '../../../../src/adapters/git-provider/local/index.ts';
import { gitProviderContract } from '../../../contracts/git-provider.ts';
import type { GitProviderHarness } from '../../../contracts/git-provider-harness.ts';

async function createHarness(): Promise<GitProviderHarness> {
  const root = await mkdtemp(join(tmpdir(), 'skep-local-git-'));
  const provider = createLocalGitProvider({ root });
  return {
    provider,
    traits: { clockSkew: 'introduction', discardedHistory: 'counts', invalidUtf8: 'replaced', remote: 'folder', formerName: 'repository' },
    secrets: [],
    host: 'none',
    pullRequests: 'none',
    async publish(gitDir, name) {
      const place = join(root, `${name}.git`);
      await rm(place, { recursive: true, force: true });
      await mkdir(dirname(place), { recursive: true });
      await cp(gitDir, place, { recursive: true });
      return name;
    },
    // The old name stays as a symbolic link, as people leave one when they move a repository.
    async rename(from, to) {
      await rename(join(root, `${from}.git`), join(root, `${to}.git`));
      await symlink(join(root, `${to}.git`), join(root, `${from}.git`));
    },
    acceptsGit: async ({ authorization }) => authorization === null,
    async close() {
      await provider.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

describe('Git provider contract: local-git', () => {
  for (const contractCase of gitProviderContract(createHarness)) test(contractCase.name, () => contractCase.run());
});

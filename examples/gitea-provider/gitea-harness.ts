import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GitProvider } from 'skep';
import { startHostProxy, type GitProviderHarness } from 'skep/testing';
import { startGiteaDouble } from './gitea-double.ts';
import { createGiteaProvider, type GiteaOptions } from './gitea-provider.ts';

const token = 'a-token-of-the-double';

/** Gives the contract suite a provider, its traits, and control over its host. `create` can replace the provider, to test the suite. */
export async function createGiteaHarness(
  create: (options: GiteaOptions) => GitProvider = createGiteaProvider,
): Promise<GitProviderHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'gitea-provider-'));
  const gitea = await startGiteaDouble(token);
  const proxy = await startHostProxy(gitea.url);
  const providers: GitProvider[] = [];
  const createProvider = (timeoutMs: number): GitProvider => {
    const provider = create({ url: proxy.url, token, timeoutMs });
    providers.push(provider);
    return provider;
  };
  let published = 0;
  return {
    provider: createProvider(60_000),
    traits: { clockSkew: 'introduction', discardedHistory: 'ignored', invalidUtf8: 'omitted', remote: 'url', formerName: 'repository' },
    secrets: [token],
    host: { createProvider, intercept: proxy.intercept },
    pullRequests: 'none',
    async publish(gitDir, name) {
      published += 1;
      const place = join(folder, `${published}.git`);
      await cp(gitDir, place, { recursive: true });
      gitea.put(name, place);
      return name;
    },
    rename: async (from, to) => gitea.rename(from, to),
    archive: async (name) => gitea.archive(name),
    acceptsGit: async ({ authorization }) => authorization === `Basic ${Buffer.from(`oauth2:${token}`).toString('base64')}`,
    async close() {
      await Promise.all(providers.map((provider) => provider.close()));
      await proxy.close();
      await gitea.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

import type { GitProvider } from '../../ports/git-provider.ts';
import type { GitOptions, SkepOptions } from '../options.ts';

/** Opens the git providers that the options choose, in their order. Closed are those only that it opens itself. */
export async function openGitProviders({ git = [{ provider: 'local' }] }: SkepOptions, closers: AsyncDisposableStack): Promise<readonly GitProvider[]> {
  const providers: GitProvider[] = [];
  for (const options of git) {
    if (isReady(options)) {
      providers.push(options);
      continue;
    }
    const provider = await open(options);
    closers.defer(() => provider.close());
    providers.push(provider);
  }
  return providers;
}

function isReady(options: GitOptions | GitProvider): options is GitProvider {
  return 'listFiles' in options;
}

async function open(options: GitOptions): Promise<GitProvider> {
  switch (options.provider) {
    case 'local': {
      const { createLocalGitProvider } = await import('../../adapters/local-git/index.ts');
      const { root = process.cwd(), timeoutMs } = options;
      return createLocalGitProvider({ root, ...(timeoutMs !== undefined && { timeoutMs }) });
    }
  }
}

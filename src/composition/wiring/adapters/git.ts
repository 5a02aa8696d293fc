import type { Clock } from '../../../ports/clock.ts';
import type { GitProvider } from '../../../ports/git-provider.ts';
import type { Store } from '../../../ports/store.ts';
import type { GitOptions, SkepOptions } from '../../options.ts';
import { unknownChoice } from './unknown-choice.ts';

/** What the providers stand on. */
interface Ground {
  readonly clock: Clock;
  readonly listingCache: Store['listingCache'];
}

/** Opens the git providers that the options choose, in their order. Closed are those only that it opens itself. */
export async function openGitProviders(
  { git = [{ provider: 'local' }] }: SkepOptions,
  { listingCache }: Store,
  clock: Clock,
  closers: AsyncDisposableStack,
): Promise<readonly GitProvider[]> {
  const providers: GitProvider[] = [];
  for (const options of git) {
    if (isReady(options)) {
      providers.push(options);
      continue;
    }
    const provider = await open(options, { clock, listingCache });
    closers.defer(() => provider.close());
    providers.push(provider);
  }
  return providers;
}

function isReady(options: GitOptions | GitProvider): options is GitProvider {
  return typeof options === 'object' && 'listFiles' in options;
}

async function open(options: GitOptions, ground: Ground): Promise<GitProvider> {
  switch (options.provider) {
    case 'local': {
      const { createLocalGitProvider } = await import('../../../adapters/git-provider/local/index.ts');
      const { root = process.cwd(), timeoutMs } = options;
      return createLocalGitProvider({ root, ...(timeoutMs !== undefined && { timeoutMs }) });
    }
    case 'github': {
      const { createGitHubProvider } = await import('../../../adapters/git-provider/github/index.ts');
      const { provider: _, ...chosen } = options;
      return createGitHubProvider({ ...chosen, ...ground });
    }
    case 'gitlab': {
      const { createGitLabProvider } = await import('../../../adapters/git-provider/gitlab/index.ts');
      const { provider: _, ...chosen } = options;
      return createGitLabProvider({ ...chosen, ...ground });
    }
    default:
      throw unknownChoice('git', options, 'github, gitlab or local as its provider, or is a GitProvider of your own');
  }
}

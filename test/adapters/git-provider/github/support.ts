import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createGitHubProvider, type GitHubOptions } from '../../../../src/adapters/git-provider/github/index.ts';
import type { GitProvider } from '../../../../src/ports/git-provider.ts';
import { createRepository, type CommitDescription, type RepositoryDescription } from '../../../contracts/git-repository.ts';
import { doubleToken, startGitHubDouble, type DoubleOptions, type GitHubDouble } from '../../../doubles/github/index.ts';
import { agents, type Dated, type HurriedClock, hurriedClock, start } from '../support.ts';

/** One file. */
export const simple: RepositoryDescription = { commits: [{ id: 'first', at: start, files: [[`${agents}/a.md`, '1']] }] };
export const simpleListing: readonly Dated[] = [[`${agents}/a.md`, start]];

/** Describes `files` files that the first commit adds, and `commits` commits that each change all of them. */
export function manyFiles(files: number, commits = 1): RepositoryDescription {
  const numbers = Array.from({ length: files }, (_, index) => index);
  return {
    commits: Array.from({ length: commits }, (_, commit): CommitDescription => ({
      id: `c${commit}`,
      at: start + commit,
      files: numbers.map((number) => [`${agents}/${number}.md`, `${number} ${commit}`]),
    })),
  };
}

/** A double with repositories, and providers that use it. All of it is removed after the test. */
export interface Scene {
  readonly double: GitHubDouble;
  readonly clock: HurriedClock;
  /** Creates a repository. Replaces an earlier one of the same name. */
  publish(description: RepositoryDescription, name?: string, visibility?: 'public' | 'private'): Promise<void>;
  /** Creates a provider with the double's token, unless the options say otherwise. */
  provider(options?: Partial<GitHubOptions>): GitProvider;
  anonymous(options?: Partial<GitHubOptions>): GitProvider;
  /** Returns the requests since the last call, in a short form. */
  asked(): string[];
}

export async function createScene(options: DoubleOptions = {}): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-github-'));
  const double = await startGitHubDouble(options);
  const clock = hurriedClock();
  const providers: GitProvider[] = [];
  let made = 0;
  onTestFinished(async () => {
    await Promise.all(providers.map((provider) => provider.close()));
    await rm(folder, { recursive: true, force: true });
    await double.close();
  });

  function anonymous(more: Partial<GitHubOptions> = {}): GitProvider {
    const provider = createGitHubProvider({ url: double.url, clock, ...more });
    providers.push(provider);
    return provider;
  }

  return {
    double,
    clock,
    async publish(description, name = 'acme/shop', visibility = 'public') {
      made += 1;
      const gitDir = join(folder, `${made}.git`);
      await createRepository(gitDir, description);
      double.repositories.put(name, gitDir, visibility);
    },
    provider: (more) => anonymous({ token: doubleToken, ...more }),
    anonymous,
    asked() {
      const asked = double.requests.map(({ method, path, body, status }) => {
        const aliases = body.match(/: history\(/gu)?.length ?? 0;
        return [method, path, ...(aliases === 0 ? [] : [`${aliases} histories`]), ...(status === 304 ? ['304'] : [])].join(' ');
      });
      double.forget();
      return asked;
    },
  };
}

export const conditional = 'GET /repos/acme/shop/commits/HEAD 304';

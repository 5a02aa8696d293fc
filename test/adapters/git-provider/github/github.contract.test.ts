import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { createGitHubProvider } from '../../../../src/adapters/git-provider/github/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import { gitProviderContract } from '../../../contracts/git-provider.ts';
import type { GitProviderHarness } from '../../../contracts/git-provider-harness.ts';
import { doubleToken, startGitHubDouble, type DoubleOptions } from '../../../doubles/github/index.ts';

interface Way extends DoubleOptions {
  readonly token: string | null;
}

async function createHarness({ token, ...options }: Way): Promise<GitProviderHarness> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-github-'));
  const double = await startGitHubDouble(options);
  const credential = token === null ? {} : { token };
  const provider = createGitHubProvider({ url: double.url, clock: createSystemClock(), ...credential });
  let published = 0;
  return {
    provider,
    traits: { clockSkew: 'introduction', discardedHistory: 'ignored', invalidUtf8: 'omitted', remote: 'url' },
    async publish(gitDir, name) {
      published += 1;
      const place = join(folder, `${published}.git`);
      await cp(gitDir, place, { recursive: true });
      double.repositories.put(name, place);
      return name;
    },
    async close() {
      await provider.close();
      await double.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const ways: readonly (readonly [string, Way])[] = [
  ['with a token', { token: doubleToken }],
  ['with a token, on an Enterprise Server', { token: doubleToken, prefix: '/api/v3' }],
  ['without a credential', { token: null }],
];

describe.each(ways)('github keeps the contract of git providers %s', (_, way) => {
  for (const contractCase of gitProviderContract(() => createHarness(way))) test(contractCase.name, () => contractCase.run());
});

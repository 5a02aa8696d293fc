import { gitProviderContract } from 'skep/testing';
import { describe, test } from 'vitest';
import { createGiteaHarness } from './gitea-harness.ts';

// Some cases take longer than the 5 seconds that Vitest allows by default.
const limitMs = 120_000;

describe('Git provider contract: Gitea', () => {
  for (const { name, run } of gitProviderContract(createGiteaHarness)) test(name, run, limitMs);
});

import { gitProviderContract } from 'skep/testing';
import { describe, test } from 'vitest';
import { createGiteaHarness } from './gitea-harness.ts';

describe('Git provider contract: Gitea', () => {
  for (const { name, run } of gitProviderContract(createGiteaHarness)) test(name, run);
});

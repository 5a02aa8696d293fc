import { gitProviderContract } from 'skep/testing';
import { describe, test } from 'vitest';
import { createGiteaHarness } from './gitea-harness.ts';

describe('the Gitea provider keeps the contract of git providers', () => {
  for (const { name, run } of gitProviderContract(createGiteaHarness)) test(name, run);
});

import { describe, test } from 'vitest';
import { createManualClock, createMemoryAuth } from './index.ts';
import { authContract } from '../../contracts/auth.ts';

const suite = authContract({
  async open() {
    const clock = createManualClock();
    const auth = createMemoryAuth(clock);
    return {
      auth,
      issue: async (principal, expiresInMs) => auth.issue(principal, expiresInMs),
      revoke: async (credential) => auth.revoke(credential),
      pass: (ms) => clock.advance(ms),
      breakStore: null,
      dispose: async () => {},
    };
  },
});

describe('Auth contract: in memory', () => {
  for (const { name, run } of suite) test(name, run);
});

import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { ListingCache } from '../../src/ports/listing-cache.ts';
import type { StageCase } from './git-provider-harness.ts';
import { calls, simple } from './git-provider-hosts.ts';
import type { HostBehaviour } from './host-proxy.ts';

const behaviours: readonly HostBehaviour[] = ['answer', 401, 403, 404, 500, { retryAfterSeconds: 900 }, 'lose', 'stall'];
const briefMs = 300;

/** A host can't be made to return the credential. An adapter that shows the host's messages needs a test of its own for that. */
export const secretCases: readonly StageCase[] = [
  [
    'shows no secret in a failure or in the detail of a check',
    async ({ publish, provider, host, secrets }) => {
      const repository = await publish(simple);
      const { authorization } = await provider.remote(repository);
      assert.ok(authorization === null || secrets.length > 0, 'the provider has a credential, but the harness names no secret');
      if (host === 'none') return;
      const hidden = [...secrets, ...(authorization === null ? [] : [authorization.replace(/^\S+ /u, '')])];
      for (const behaviour of behaviours) {
        host.intercept(() => behaviour);
        const fresh = host.createProvider(briefMs);
        const when = `if the host's answer is ${JSON.stringify(behaviour)}`;
        const { detail } = await fresh.check();
        assertHidden(detail, hidden, `the detail of a check ${when}`);
        await Promise.all(calls.map(async ([what, call]) => {
          const failure = await Promise.resolve(call(fresh, repository)).then(() => null, (error: unknown) => error);
          const shown = inspect(failure, { depth: null, showHidden: true, maxStringLength: null });
          assertHidden(shown, hidden, `the failure of ${what} ${when}`);
        }));
      }
    },
  ],
  [
    'stores no secret in its listing cache',
    async ({ publish, host, secrets }) => {
      const repository = await publish(simple);
      if (host === 'none') return;
      const { cache, seen } = createRecordingCache();
      const provider = host.createProvider(60_000, cache);
      for (const [what, call] of calls) if (what !== 'openPullRequest') await call(provider, repository);
      assertHidden(seen.join('\n'), secrets, 'a scope, key or value of the listing cache');
    },
  ],
];

function assertHidden(text: string, secrets: readonly string[], where: string): void {
  // The message must not show the secret either.
  for (const secret of secrets) assert.ok(!text.includes(secret), `${where} contains a secret`);
}

function createRecordingCache(): { readonly cache: ListingCache; readonly seen: readonly string[] } {
  const [seen, values] = [new Array<string>(), new Map<string, string>()];
  const cache: ListingCache = {
    async get(scope, key) {
      seen.push(scope, key);
      return values.get(JSON.stringify([scope, key])) ?? null;
    },
    async put(scope, key, value) {
      seen.push(scope, key, value);
      values.set(JSON.stringify([scope, key]), value);
    },
  };
  return { cache, seen };
}

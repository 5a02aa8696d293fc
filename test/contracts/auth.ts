import { deepEqual, equal, ok, partialDeepStrictEqual, rejects } from 'node:assert/strict';
import { hash } from 'node:crypto';
import { isFailureOf } from '../../src/domain/failure.ts';
import type { Principal } from '../../src/domain/principal.ts';
import type { Auth } from '../../src/ports/auth.ts';
import type { ContractCase } from './contract.ts';

export interface OpenAuth {
  readonly auth: Auth;
  /** Makes a credential of the principal. It expires after `expiresInMs`, if set. */
  readonly issue: (principal: Principal, expiresInMs?: number) => Promise<string>;
  readonly revoke: (credential: string) => Promise<void>;
  /** Lets `ms` milliseconds pass. */
  readonly pass: (ms: number) => void;
  /** Makes every call of the auth to its store fail. Null if it calls none. */
  readonly breakStore: (() => Promise<void>) | null;
  dispose(): Promise<void>;
}

export interface AuthHarness {
  open(): Promise<OpenAuth>;
}

const ann: Principal = { userId: 'ann', keyName: 'laptop', access: 'full' };
const bob: Principal = { userId: 'bob', keyName: 'dashboard', access: 'read', repositories: ['acme/*'] };

const digestOf = (key: string): string => hash('sha256', key, 'hex');

/** The contract of every `Auth`. */
export function authContract(harness: AuthHarness): ContractCase[] {
  return [
    authCase(harness, 'describes in one line what it accepts', async ({ auth }) => {
      ok(auth.description.length > 0 && !auth.description.includes('\n'));
    }),
    authCase(harness, 'returns the principal of each credential', async ({ auth, issue }) => {
      const [anns, bobs] = [await issue(ann), await issue(bob)];
      deepEqual(await auth.authenticate(anns), ann);
      deepEqual(await auth.authenticate(bobs), bob);
      deepEqual(await auth.authenticate(anns), ann);
    }),
    authCase(harness, 'refuses a missing credential', async ({ auth }) => {
      await refuses(auth, null);
    }),
    authCase(harness, 'refuses a credential with a small change', async ({ auth, issue }) => {
      const key = await issue(ann);
      const nearly = [key.slice(1), key.slice(0, -1), `${key}x`, ` ${key}`, `${key} `, `${key}\u0000`, key.toUpperCase(), `Bearer ${key}`];
      for (const credential of nearly) await refuses(auth, credential);
    }),
    authCase(harness, 'refuses empty, very long and malformed credentials', async ({ auth, issue }) => {
      await issue(ann);
      const nothings = ['', ' ', '%', '*', `' OR 1=1 --`, '\u0000', '\ud800', 'é\n', 'null', 'undefined', '__proto__', 'x'.repeat(1_000_000)];
      for (const credential of nothings) await refuses(auth, credential);
    }),
    authCase(harness, 'refuses a credential from the moment it expires', async ({ auth, issue, pass }) => {
      const key = await issue(ann, 1000);
      pass(999);
      // An adapter may add when it expires.
      partialDeepStrictEqual(await auth.authenticate(key), ann);
      pass(1);
      await refuses(auth, key);
    }),
    authCase(harness, 'refuses a revoked credential at once, and no other credential', async ({ auth, issue, revoke }) => {
      const [anns, bobs] = [await issue(ann), await issue(bob)];
      deepEqual(await auth.authenticate(anns), ann);
      await revoke(anns);
      await refuses(auth, anns);
      deepEqual(await auth.authenticate(bobs), bob);
    }),
    authCase(harness, 'returns the principal for the digest of a credential until it is revoked', async ({ auth, issue, revoke }) => {
      if (auth.authenticateDigest === undefined) return;
      const key = await issue(ann);
      const digest = hash('sha256', key, 'hex');
      deepEqual(await auth.authenticateDigest(digest), ann);
      for (const other of ['', key, digest.slice(1), digest.toUpperCase(), 'x'.repeat(64), '\ud800']) {
        await rejects(auth.authenticateDigest(other), (error) => isFailureOf(error, 'unauthorized'));
      }
      await revoke(key);
      await rejects(auth.authenticateDigest(digest), (error) => isFailureOf(error, 'unauthorized'));
    }),
    authCase(harness, "lists the digests of a user's valid credentials", async ({ auth, issue, revoke, pass }) => {
      if (auth.digestsOf === undefined) return;
      const [anns, root] = [await issue(ann), await issue({ userId: 'root', keyName: 'admin', access: 'admin' })];
      const expiring = await issue({ ...ann, keyName: 'short' }, 1000);
      await issue(bob);
      deepEqual((await auth.digestsOf('ann')).toSorted(), [anns, root, expiring].map(digestOf).toSorted());
      pass(1000);
      await revoke(root);
      deepEqual(await auth.digestsOf('ann'), [digestOf(anns)]);
      deepEqual(await auth.digestsOf('nobody'), []);
    }),
    authCase(harness, 'fails with store_unavailable, not unauthorized, if its store fails', async ({ auth, issue, breakStore }) => {
      const key = await issue(ann);
      if (breakStore === null) {
        deepEqual(await auth.authenticate(key), ann);
        return;
      }
      await breakStore();
      await rejects(auth.authenticate(key), (error) => isFailureOf(error, 'store_unavailable'));
    }),
  ];
}

function authCase(harness: AuthHarness, name: string, run: (open: OpenAuth) => Promise<void>): ContractCase {
  return {
    name,
    async run() {
      const open = await harness.open();
      try {
        await run(open);
      } finally {
        await open.dispose();
      }
    },
  };
}

async function refuses(auth: Auth, credential: string | null): Promise<void> {
  await rejects(auth.authenticate(credential), (error) => {
    ok(isFailureOf(error, 'unauthorized'), String(error));
    if (credential !== null && credential.length > 8) equal(error.message.includes(credential), false);
    return true;
  });
}

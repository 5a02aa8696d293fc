import { expect, test } from 'vitest';
import { findSigner } from '../../../src/adapters/e2b/signed-file-url.ts';
import type { RequestContext } from '../../../src/adapters/http/request-context.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';

test('other events are handled between the sandboxes that a signature is compared with', async () => {
  const sandboxes = Array.from({ length: 50 }, (_, at) => ({ id: `sb-${at}`, ownerId: 'ann' }));
  const skep = {
    secret: 'secret', clock: { now: () => 0 }, auth: { digestsOf: async () => ['a'.repeat(64)] },
    sandboxes: { search: async () => ({ items: sandboxes, next: null }) },
  };
  const http = { authenticator: { authenticateSignature: async (_: unknown, find: () => Promise<unknown>) => await find() } };
  const context = { skep, http, closed: neverAborts } as unknown as RequestContext;
  let others = 0;
  const other = () => {
    others += 1;
    setImmediate(other).unref();
  };
  other();
  const signed = { path: '/a', operation: 'read', user: '', signature: `v1_${'A'.repeat(43)}`, expiration: null } as const;
  await expect(findSigner(context, signed)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(others).toBeGreaterThanOrEqual(sandboxes.length);
});

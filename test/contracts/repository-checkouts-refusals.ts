import assert from 'node:assert/strict';
import { isFailureOf } from '../../src/domain/failure.ts';
import { never, untold, type CheckoutCase } from './repository-checkouts-harness.ts';

const simple = { commits: [{ id: 'first', at: 1_600_000_000, files: [['a', '1'] as const] }] };

export const refusalCases: readonly CheckoutCase[] = [
  [
    'fails with repository_not_found where there is none',
    async ({ open, missing }) => {
      const source = await missing('acme/missing');
      await assert.rejects(open(source), (error: unknown) => isFailureOf(error, 'repository_not_found') && error.context.repository === source.repository);
    },
  ],
  [
    'fails with provider_failed, and the name, where there is no such branch',
    async ({ publish, open }) => {
      const source = await publish(simple);
      for (const branch of ['other', 'mai', 'main2', 'HEAD', '--upload-pack=x', 'a..b', 'a b', '', 'refs/heads/main', '*', 'x.lock']) {
        const named = (error: unknown): boolean => isFailureOf(error, 'provider_failed') && error.message.includes(JSON.stringify(branch));
        await assert.rejects(open(source, branch), named, branch);
      }
      const empty = await publish({ commits: [] }, 'acme/empty');
      await assert.rejects(open(empty, 'main'), (error: unknown) => isFailureOf(error, 'provider_failed'));
    },
  ],
  [
    'ends with the reason of a signal that has fired, and serves the next caller',
    async ({ checkouts, publish, open }) => {
      const source = await publish(simple);
      const request = { ...source, branch: null };
      const reason = new Error('the caller has left');
      const isReason = (error: unknown): boolean => error === reason;
      await assert.rejects(checkouts.checkOut(request, untold, AbortSignal.abort(reason)), isReason);
      const leaving = new AbortController();
      const started = checkouts.checkOut(request, untold, leaving.signal);
      leaving.abort(reason);
      await assert.rejects(started, isReason);
      assert.deepEqual((await open(source)).files, { a: '1' });
    },
  ],
  [
    'an archive ends with the signal, and can be left',
    async ({ checkouts, publish, open }) => {
      const source = await publish(simple);
      const request = { ...source, branch: null };
      const reason = new Error('the caller has left');
      const isReason = (error: unknown): boolean => error === reason;
      const leaving = new AbortController();
      const [unread, begun] = await Promise.all([1, 2].map(() => checkouts.checkOut(request, untold, leaving.signal)));
      const [late, early] = [unread?.archive.getReader(), begun?.archive.getReader()];
      assert.equal((await early?.read())?.done, false);
      leaving.abort(reason);
      await assert.rejects(async () => {
        while ((await early?.read())?.done === false);
      }, isReason);
      await assert.rejects(async () => late?.read(), isReason);
      const left = await checkouts.checkOut(request, untold, never);
      await left.archive.cancel();
      assert.deepEqual((await open(source)).files, { a: '1' });
    },
  ],
  [
    'says in one line that it can work, closes twice, and works no more',
    async ({ checkouts, publish, open }) => {
      const source = await publish(simple);
      assert.match(checkouts.name, /^[a-z][a-z-]*$/u);
      const { ok, detail } = await checkouts.check();
      assert.equal(ok, true, detail);
      assert.match(detail, /^[^\n]+$/u);
      await open(source);
      await checkouts.close();
      await checkouts.close();
      await assert.rejects(open(source));
    },
  ],
];

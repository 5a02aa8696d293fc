import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { isFailureOf, type FailureCode, type FailureContexts } from '../../src/domain/failure.ts';
import { never, untold, type CheckoutCase } from './repository-checkouts-harness.ts';

const simple = { commits: [{ id: 'first', at: 1_600_000_000, files: [['a', '1'] as const] }] };

/** Is it this failure, about this? */
function named<C extends FailureCode>(code: C, context: FailureContexts[C]): (error: unknown) => boolean {
  return (error) => {
    if (!isFailureOf(error, code)) return false;
    assert.deepEqual(error.context, context);
    return true;
  };
}

export const refusalCases: readonly CheckoutCase[] = [
  [
    'fails with repository_not_found where there is none',
    async ({ open, missing }) => {
      const source = await missing('acme/missing');
      await assert.rejects(open(source), (error: unknown) => isFailureOf(error, 'repository_not_found') && error.context.repository === source.repository);
    },
  ],
  [
    'fails with branch_not_found, and what was asked for, where there is no such branch',
    async ({ publish, open }) => {
      const source = await publish(simple);
      for (const branch of ['other', 'mai', 'main2', 'HEAD', '--upload-pack=x', 'a..b', 'a b', '', 'refs/heads/main', '*', 'x.lock']) {
        await assert.rejects(open(source, branch), named('branch_not_found', { repository: source.repository, branch }), branch);
      }
    },
  ],
  [
    'tells an empty repository from one that lacks the branch, also where its default branch has no commit',
    async ({ publish, open }) => {
      const empty = await publish({ commits: [] }, 'acme/empty');
      await assert.rejects(open(empty, 'main'), named('repository_empty', { repository: empty.repository, branch: 'main' }));
      const other = await publish({ ...simple, unborn: 'next' }, 'acme/unborn');
      await assert.rejects(open(other, 'next'), named('branch_not_found', { repository: other.repository, branch: 'next' }));
    },
  ],
  [
    'tells a credential that is refused from one that may not read the repository, and nothing of the credential',
    async ({ traits, refused, open }) => {
      if (traits.access === 'open') return;
      const [unknown, unreadable] = [await refused('acme/one', 'credential'), await refused('acme/two', 'repository')];
      await assert.rejects(open(unknown), named('provider_unauthorized', { provider: unknown.provider }));
      await assert.rejects(open(unreadable), named('repository_forbidden', { provider: unreadable.provider, repository: unreadable.repository }));
      for (const source of [unknown, unreadable]) {
        const error: unknown = await open(source, 'main').then(() => null, (error: unknown) => error);
        const { authorization } = source.remote;
        assert.equal(authorization !== null && inspect(error, { depth: 20 }).includes(authorization), false);
      }
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

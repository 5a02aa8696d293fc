import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isFailure } from '../../../../src/domain/failure.ts';
import { answerWith } from '../../../doubles/github/faults.ts';
import { everything } from '../support.ts';
import { createScene, simple } from './support.ts';

const providerCodes = ['repository_not_found', 'provider_unauthorized', 'provider_rate_limited', 'provider_timeout', 'provider_failed'];

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(() => null, (error: unknown) => error);
  if (error === null) return 'ok';
  return isFailure(error) ? error.code : `not a failure: ${inspect(error)}`;
}

const header = fc.constantFrom('retry-after', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'etag', 'link', 'location', 'date', 'content-encoding');
const headers = fc.dictionary(header, fc.oneof(fc.integer().map(String), fc.constantFrom('0', '<http://x/?page=9>; rel="last"', 'never', '')), { maxKeys: 3 });
const part = fc.constantFrom('data', 'errors', 'repository', 'name', 'nameWithOwner', 'defaultBranchRef', 'target', 'oid', 'file', 'object', 'entries', 'h0', 'totalCount', 'nodes', 'pageInfo', 'full_name', 'default_branch', 'tree', 'truncated', 'sha');
const leaf = fc.oneof(fc.constantFrom<unknown>(null, true, '', 'acme/shop', 'main', 'tree', 'blob', '0'.repeat(40), {}, []), fc.integer(), fc.string());
const { body } = fc.letrec<{ body: unknown }>((tie) => ({
  body: fc.oneof({ maxDepth: 6 }, leaf, fc.dictionary(part, tie('body'), { maxKeys: 4 }), fc.array(tie('body'), { maxLength: 3 })),
}));
const status = fc.oneof({ weight: 3, arbitrary: fc.constant(200) }, { weight: 2, arbitrary: fc.integer({ min: 200, max: 599 }) });

describe('The GitHub provider', () => {
  test('sends for a random name one request with exactly that path, or none', async () => {
    const scene = await createScene();
    const [known, unknown] = [scene.provider(), scene.anonymous()];
    const name = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.tuple(fc.string(), fc.string()).map((parts) => parts.join('/')));
    await fc.assert(
      fc.asyncProperty(name, async (repository) => {
        for (const provider of [known, unknown]) {
          scene.double.forget();
          expect(await codeOf(provider.listFiles(repository, everything))).toBe('repository_not_found');
          for (const { segments, isGraphql } of scene.double.requests) {
            if (!isGraphql) expect(segments).toEqual(['repos', ...repository.split('/')]);
          }
          expect(scene.double.requests.length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('returns for a random response a listing or a provider failure', async () => {
    const scene = await createScene();
    await scene.publish(simple);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ status, headers, body }), { minLength: 1, maxLength: 3 }), fc.boolean(), async (answers, hasToken) => {
        scene.double.faults.clear();
        for (const answer of answers) scene.double.faults.plan({ act: answerWith(answer), times: 1 });
        const provider = hasToken ? scene.provider() : scene.anonymous();
        expect(['ok', ...providerCodes]).toContain(await codeOf(provider.listFiles('acme/shop', everything)));
        await provider.close();
      }),
      { numRuns: 200 },
    );
  });
});

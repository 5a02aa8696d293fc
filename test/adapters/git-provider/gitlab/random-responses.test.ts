import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isFailure } from '../../../../src/domain/failure.ts';
import type { Fault, RouteName } from '../../../doubles/gitlab/index.ts';
import { everything, simple } from '../support.ts';
import { hostOf, providerOf } from './support.ts';

const sha = fc.constantFrom('a'.repeat(40), 'b'.repeat(40), 'x', '');
const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
const entry = fc.record(
  {
    id: fc.oneof(sha, scalar),
    path: fc.oneof(fc.constantFrom('.skep/microagents/a.md', '.skep/microagents/../../x', '/etc', '.skep/microagents'), scalar),
    type: fc.constantFrom('blob', 'tree', 'commit', 1),
    mode: fc.constantFrom('100644', '120000', '', null),
    parent_ids: fc.oneof(fc.array(sha), scalar),
    committed_date: fc.oneof(fc.constantFrom('2020-01-01T00:00:00Z', '12345-01-01', '+020000-01-01T00:00:00Z', 'x'), scalar),
    web_url: fc.oneof(fc.webUrl(), fc.constantFrom('https://x/a/%ff/-/commit/aa', 'https://x/a/b/-/commit/aa'), scalar),
    project_id: scalar,
  },
  { requiredKeys: [] },
);
const answer = fc.oneof(fc.json(), fc.jsonValue().map((value) => JSON.stringify(value)), entry.map((value) => JSON.stringify(value)), fc.array(entry).map((value) => JSON.stringify(value)), fc.string());
const headers = fc.dictionary(
  fc.constantFrom('link', 'location', 'x-next-page', 'retry-after', 'ratelimit-reset', 'ratelimit-remaining', 'content-type', 'date'),
  fc.oneof(fc.constantFrom('<', '</x>; rel=next', '<http://[>; rel="next"', '2', '-1', '0', '1e9', 'application/json'), fc.string({ unit: 'grapheme-ascii' })),
);
const fault: fc.Arbitrary<Fault> = fc.oneof(
  answer.map((text) => ({ kind: 'body', text }) as const),
  fc.record({ kind: fc.constant('status' as const), status: fc.constantFrom(200, 201, 204, 301, 304, 400, 403, 404, 409, 418, 429, 500, 501), headers, body: fc.jsonValue() }),
  fc.record({ kind: fc.constant('headers' as const), headers }),
);

test('a random response leads to a result or to a failure that the port declares', async () => {
  const host = await hostOf();
  await host.publish(simple);
  const route = fc.constantFrom<RouteName>('commit', 'tree', 'commits', 'project');
  await fc.assert(
    fc.asyncProperty(route, fault, fc.integer({ min: 1, max: 3 }), async (name, drawn, times) => {
      host.faults.clear();
      host.faults.add({ fault: drawn, route: name, times });
      const provider = providerOf(host);
      for (const work of [() => provider.listFiles('acme/shop', everything), () => provider.find('acme/shop')]) {
        const outcome = await work().catch((error: unknown) => error);
        if (outcome instanceof Error) expect(isFailure(outcome) && outcome.code !== 'internal', String(outcome)).toBe(true);
      }
      await provider.close();
    }),
    { numRuns: 250 },
  );
});

import { expect, test } from 'vitest';
import { createGitLabProvider } from '../../../../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../../../../src/adapters/clock/system-clock.ts';
import type { Fault } from '../../../doubles/gitlab/index.ts';
import { hostOf, providerOf } from './support.ts';

test('check() takes one request and reports the GitLab version', async () => {
  const host = await hostOf();
  const { ok, detail } = await providerOf(host).check();
  expect([ok, detail]).toEqual([true, `GitLab 19.1.0-ee at ${new URL(host.url).host} answers, and accepts the token`]);
  expect(host.counts()).toEqual({ version: 1 });
});

test('check() reports that only public projects are visible without a token', async () => {
  const host = await hostOf();
  const provider = createGitLabProvider({ url: host.url, clock: createSystemClock() });
  expect(await provider.check()).toEqual({ ok: true, detail: expect.stringContaining('only public projects') });
  await provider.close();
});

test.each<[string, Fault | null, RegExp]>([
  ['an unknown token', null, /refused the deployment's credential.*scope read_api/u],
  ['a missing scope', { kind: 'status', status: 403, body: { error: 'insufficient_scope' } }, /refused the deployment's credential.*scope read_api/u],
  ['a 404 page of another program', { kind: 'status', status: 404, headers: { 'content-type': 'text/html' } }, /check the configured one/u],
  ['an HTML page', { kind: 'body', text: '<html>', contentType: 'text/html' }, /check that its URL/u],
  ['a malformed version', { kind: 'body', text: '{"version":"<b>"}' }, /is not in the documented format/u],
  ['a server error', { kind: 'status', status: 500 }, /status 500/u],
])('check() reports in one line what to fix after %s', async (_, fault, detail) => {
  const host = await hostOf();
  if (fault !== null) host.faults.add({ fault });
  const result = await providerOf(host, fault === null ? { token: 'glpat-unknown' } : {}).check();
  const refusal = detail.source.startsWith('refused') && { refusal: 'credential' };
  expect(result).toEqual({ ok: false, detail: expect.stringMatching(detail), ...refusal });
  expect(result.detail).toMatch(/^[^\n]+$/u);
});

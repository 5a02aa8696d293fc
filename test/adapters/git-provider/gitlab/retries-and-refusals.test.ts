import { describe, expect, test } from 'vitest';
import type { Fault } from '../../../doubles/gitlab/index.ts';
import { failureOf, list, simple, simpleListing } from '../support.ts';
import { hostOf, manyFiles, providerOf } from './support.ts';

describe('A listing', () => {
  test.each<[string, Fault, RegExp]>([
    ['500', { kind: 'status', status: 500 }, /^provider_failed: .*"status":500/u],
    ['invalid JSON', { kind: 'body', text: '{"id":' }, /^provider_failed: .*malformed_answer/u],
    ['an object with other types', { kind: 'body', text: '{"id":"x"}' }, /^provider_failed: .*malformed_answer/u],
    ['a list', { kind: 'body', text: '[1]' }, /^provider_failed: .*malformed_answer/u],
    ['an HTML page', { kind: 'body', text: '<html>', contentType: 'text/html' }, /^provider_failed: .*JSON.*check/u],
    ['an HTML page with status 404', { kind: 'status', status: 404, headers: { 'content-type': 'text/html' } }, /^provider_failed: .*URL.*check/u],
    ['401', { kind: 'status', status: 401, body: { message: '401 Unauthorized' } }, /^provider_unauthorized: /u],
    ['403 because of the scope', { kind: 'status', status: 403, body: { error: 'insufficient_scope', error_description: 'x' } }, /^provider_unauthorized: /u],
    ['403 because of the account', { kind: 'status', status: 403, body: { message: '403 Forbidden - Your account has been blocked' } }, /^provider_unauthorized: /u],
    ['403 because of the repository', { kind: 'status', status: 403, body: { message: '403 Forbidden' } }, /^repository_not_found: /u],
    ['404 because the code is for members', { kind: 'status', status: 404, body: { message: '404 Repository Not Found' } }, /^repository_not_found: /u],
  ])('fails without a retry after %s', async (_, fault, message) => {
    const host = await hostOf();
    await host.publish(simple);
    host.faults.add({ fault });
    const provider = providerOf(host);
    expect(await failureOf(list(provider))).toMatch(message);
    expect(host.counts()).toEqual({ commit: 1 });
    expect(await failureOf(provider.find('acme/shop'))).toMatch(message);
    host.faults.clear();
    expect(await list(provider)).toEqual(simpleListing);
  });

  test.each(['tree', 'commits'] as const)('fails if the %s request fails, and is never empty instead', async (route) => {
    const host = await hostOf();
    await host.publish(simple);
    const provider = providerOf(host);
    for (const [fault, message] of [
      [{ kind: 'status', status: 500 }, /^provider_failed: .*"status":500/u],
      [{ kind: 'body', text: '{}' }, /^provider_failed: .*malformed_answer/u],
      [{ kind: 'body', text: '[{}]' }, /^provider_failed: .*malformed_answer/u],
      [{ kind: 'status', status: 404, body: { message: '404 Project Not Found' } }, /^repository_not_found: /u],
      [{ kind: 'status', status: 401, body: { message: '401 Unauthorized' } }, /^provider_unauthorized: /u],
    ] as const) {
      host.faults.clear();
      host.faults.add({ fault, route });
      expect(await failureOf(list(provider))).toMatch(message);
    }
    host.faults.clear();
    expect(await list(provider)).toEqual(simpleListing);
  });

  test('leaves out a file only if its history was empty twice', async () => {
    const host = await hostOf();
    await host.publish(simple.slice(0, 1));
    host.faults.add({ fault: { kind: 'body', text: '[]' }, route: 'commits', times: 1 });
    expect(await list(providerOf(host))).toEqual(simpleListing.slice(0, 1));
    host.faults.clear();
    host.faults.add({ fault: { kind: 'body', text: '[]' }, route: 'commits', times: 2 });
    expect(await list(providerOf(host))).toEqual([]);
  });

  test('fails if the directory has too many files', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(50));
    expect(await failureOf(list(providerOf(host, { maxFiles: 49 })))).toMatch(/^provider_failed: .*too_large.*49 files/u);
  });
});

import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { failureOf, list, simple } from '../support.ts';
import { hostOf, manyFiles, providerOf } from './support.ts';

describe('A listing', () => {
  test('fails if a redirect leads to another host or out of the API', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const { url, asked } = await other();
    const locations = [`${url}/api/v4/projects/1`, `${host.url}/users/sign_in`, host.url.replace('http:', 'https:'), 'http://', '', `${host.url}/api/v4/../x`, 'HEAD2', '/api/v4/projects/1000', '/api/v4/user'];
    for (const location of locations) {
      host.faults.clear();
      host.faults.add({ fault: { kind: 'status', status: 302, headers: { location } } });
      expect(await failureOf(list(providerOf(host)))).toMatch(/^provider_failed: .*redirects/u);
    }
    expect(asked).toEqual([]);
    host.faults.clear();
    host.faults.add({ fault: { kind: 'status', status: 301, headers: { location: 'other/' } }, route: 'project' });
    expect(await failureOf(providerOf(host).find('acme/shop'))).toMatch(/^provider_failed: .*redirects/u);
  });

  test('fails if the link to the next page leads to another host', async () => {
    const host = await hostOf();
    await host.publish(simple);
    const { url, asked } = await other();
    for (const route of ['tree', 'commits'] as const) {
      host.faults.clear();
      host.faults.add({ fault: { kind: 'headers', headers: { link: `<${url}/api/v4/x?page_token=x>; rel="next"` } }, route });
      expect(await failureOf(list(providerOf(host)))).toMatch(/^provider_failed: .*another origin/u);
    }
    expect(asked).toEqual([]);
  });

  test('fails if the link to the next page leads back', async () => {
    const host = await hostOf();
    await host.publish(manyFiles(150));
    const link = `<${host.url}/api/v4/x?page_token=${Buffer.from('{"file_name":".skep/microagents/0001.md"}').toString('base64')}>; rel="next"`;
    host.faults.add({ fault: { kind: 'headers', headers: { link, 'x-next-page': '' } }, route: 'tree' });
    expect(await failureOf(list(providerOf(host)))).toMatch(/^provider_failed: .*lead back/u);
  });
});

/** A host that must not get any request. */
async function other(): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

import { expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { refusalOf } from './config-files.ts';

test('trusted proxies and allowed origins are lists', () => {
  const given = { SKEP_TRUST_PROXY: 'loopback, 10.0.0.0/8,::1', SKEP_CORS_ORIGINS: 'https://app.example.com,http://localhost:5173' };
  expect(readConfig(given)).toMatchObject({
    trustProxy: ['loopback', '10.0.0.0/8', '::1'], corsOrigins: ['https://app.example.com', 'http://localhost:5173'],
  });
});

test.each([
  ['SKEP_TRUST_PROXY', '10.0.0.0/99'], ['SKEP_TRUST_PROXY', 'proxy.example.com'], ['SKEP_TRUST_PROXY', '1'],
  ['SKEP_CORS_ORIGINS', '*'], ['SKEP_CORS_ORIGINS', 'app.example.com'], ['SKEP_CORS_ORIGINS', 'https://app.example.com/'],
])('%s=%s is refused', (name, text) => {
  const problem = `has an entry that is "${text}", which is not an ${name === 'SKEP_TRUST_PROXY' ? 'address' : 'origin'}`;
  expect(refusalOf({ [name]: text }).problems).toMatchObject([{ name, problem }]);
});

test('a URL of the proxy to ports may not have a path', () => {
  expect(readConfig({ SKEP_PROXY_URL: 'https://sandboxes.example.com/' }).proxyUrl).toBe('https://sandboxes.example.com');
  expect(refusalOf({ SKEP_PROXY_URL: 'https://skep.example.com/ports/' }).problems).toMatchObject([
    { name: 'SKEP_PROXY_URL', problem: expect.stringContaining('has a path, but ports of sandboxes need a host name of their own') },
  ]);
});

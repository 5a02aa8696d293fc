import { expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { portProxyOptionsOf } from '../../src/composition/executable/port-proxy.ts';

const optionsOf = (env: Readonly<Record<string, string>>) => portProxyOptionsOf(readConfig(env));

test('the options of the port proxy are those of the configuration', () => {
  const env = {
    SKEP_HOST: '0.0.0.0', SKEP_PROXY_PORT: '8081', SKEP_PROXY_URL: 'https://sandboxes.example.com', SKEP_PROXY_DOMAIN: 'sandboxes.example.com',
    SKEP_TRUST_PROXY: 'loopback', SKEP_SHUTDOWN_TIMEOUT: '8s', SKEP_KEEP_ALIVE_TIMEOUT: '65s',
  };
  expect(optionsOf(env)).toEqual({
    host: '0.0.0.0', port: 8081, url: 'https://sandboxes.example.com', domain: 'sandboxes.example.com', trustProxy: ['loopback'], drainMs: 4000,
    connectionsPerSandbox: 1000, failedLoginsPerMinute: undefined, keepAliveTimeoutMs: 65_000,
  });
});

test('without settings, the port proxy is beside the API, and its domain is one that browsers resolve to this machine', () => {
  expect(optionsOf({})).toMatchObject({ host: '127.0.0.1', port: 3001, url: undefined, domain: 'localhost', drainMs: 10_000 });
});

test.each([
  ['other machines reach it', { SKEP_HOST: '0.0.0.0' }],
  ['it has a URL', { SKEP_PROXY_URL: 'https://sandboxes.example.com' }],
])('the port proxy has no domain by default if %s', (_, env) => {
  expect(optionsOf(env)).toMatchObject({ domain: undefined });
});

test('there are no options if the port proxy is off', () => {
  expect(optionsOf({ SKEP_PROXY_PORT: 'off' })).toBeNull();
});

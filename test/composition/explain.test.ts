import { expect, test } from 'vitest';
import { StoreRefused } from '../../src/adapters/store/sqlite/index.ts';
import { explain } from '../../src/composition/executable/explain-error.ts';
import { ConfigError } from '../../src/composition/config/config-error.ts';
import { whyNodeIsTooOld } from '../../src/composition/node-version.ts';

test.each([
  ['EADDRINUSE', 'listen', /another program uses this address; set SKEP_PORT/],
  ['EACCES', 'listen', /may not listen on the port; set SKEP_PORT/],
  ['EADDRNOTAVAIL', 'listen', /no such address; set SKEP_HOST/],
  ['ENOTFOUND', 'getaddrinfo', /host name is not known; set SKEP_HOST/],
  ['ESTRANGE', 'listen', /refuses it \(ESTRANGE\); set SKEP_HOST and SKEP_PORT/],
])('an error %s at the start is explained with advice, without a stack', (code, syscall, text) => {
  const told = explain(Object.assign(new Error('it failed'), { code, syscall }));
  expect(told).toMatch(text);
  expect(told).not.toMatch(/ {4}at |undefined/);
});

test('a store that was copied without its log is refused with the complete commands that help', () => {
  const told = explain(new StoreRefused('log_missing', 'It has no log.', { database: '/data/skep.db' }));
  expect(told).toMatch(/^It has no log\.\nTo accept the loss: npm run -s skep -- restore \/data\/skep\.db\n.*npm run -s skep -- backup <file>$/);
  expect(explain(new StoreRefused('locked', 'It is open.'))).toBe('It is open.');
});

test('an expected error has no stack, and an unexpected one has its stack', () => {
  expect(explain(new ConfigError([{ name: 'SKEP_PORT', problem: 'is wrong', form: 'a port' }]))).not.toContain('    at ');
  expect(explain(new Error('surprise'))).toMatch(/surprise\n {4}at /);
});

test.each([['20.20.2', 'needs Node 24 or newer, and this is 20.20.2.'], ['24.0.0', null], ['26.1.0', null]])('the reason why Node %s is too old is %j', (version, why) => {
  expect(whyNodeIsTooOld(version)).toBe(why);
});

import { expect, onTestFinished, test, vi } from 'vitest';
import { clientOf, followOptions, textOfError } from '../../../src/adapters/cli/console.ts';
import { unreachable } from '../../../src/client/failures.ts';
import { SkepError } from '../../../src/client/index.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';

const problem = (loc: readonly (string | number)[], msg: string) => ({ loc, msg, type: 'invalid_value' });

test('the error of an invalid request names the option of the command, not the field of the API', () => {
  const problems = [
    problem(['body', 'env', '1A'], 'must be a name'), problem(['path', 'port'], 'must be a port'),
    problem(['body', 'resources', 'memory_bytes'], 'must be positive'), problem(['body', 'initial_message'], 'must be text'),
  ];
  const error = new SkepError('invalid_request', 'of the server', { context: { problems } });
  expect(textOfError(error)).toBe(
    '--env (1A): must be a name; the port: must be a port; --memory: must be positive; body.initial_message: must be text',
  );
});

test.each([
  ['ECONNREFUSED', / \(ECONNREFUSED\)\. Start one with /],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', / certificate is not accepted\. .*NODE_EXTRA_CA_CERTS/],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', / certificate is not accepted\. /],
  ['CERT_HAS_EXPIRED', / certificate is not accepted\. /],
])('a server that can not be reached (%s) is reported with what to do', (code, text) => {
  const cause = Object.assign(new Error('of the socket'), { code });
  for (const error of [cause, new TypeError('fetch failed', { cause })]) expect(textOfError(unreachable('https://x', error))).toMatch(text);
});

test('a lost connection of a stream is reported without the advice to start a server', () => {
  const reported: string[] = [];
  const { onLost } = followOptions(neverAborts, (text) => reported.push(text));
  onLost(new SkepError('unreachable', 'No Skep server answers at http://x.', { context: { url: 'http://x' } }));
  expect(reported).toEqual(['The connection to the server was lost, reconnecting: No Skep server answers at http://x.']);
});

test('an empty variable counts as missing', () => {
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ['SKEP_PUBLIC_URL', 'SKEP_HOST', 'SKEP_PORT']) vi.stubEnv(name, '');
  vi.stubEnv('SKEP_API_KEY', 'key');
  expect(clientOf({}).url).toBe('http://127.0.0.1:3000');
  vi.stubEnv('SKEP_API_KEY', '');
  expect(() => clientOf({})).toThrow('Set SKEP_API_KEY');
});

import { expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { createPinoLogger } from '../../../src/adapters/logger/pino-logger.ts';
import type { LogFields } from '../../../src/ports/logger.ts';

function written(fields: LogFields): unknown {
  const lines: string[] = [];
  const logger = createPinoLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  logger.debug(fields, 'left out');
  logger.info(fields, 'a message');
  expect(lines).toHaveLength(1);
  return JSON.parse(lines[0] ?? '');
}

test('a line is JSON with its time and its level', () => {
  expect(written({ sandbox: 'sb-1' })).toEqual({ level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/), sandbox: 'sb-1', msg: 'a message' });
});

test('the data of reasons and failures has the names of the HTTP API', () => {
  const fields = { reason: { code: 'idle', afterMs: 5 }, context: { limitMs: 5, reason: { code: 'idle', afterMs: 5 } } };
  const reason = { code: 'idle', after_ms: 5 };
  expect(written(fields)).toMatchObject({ reason, context: { limit_ms: 5, reason } });
});

test('a field with the name of a secret is redacted, at the top and one level below', () => {
  const fields = { api_key: 's3cret', key_name: 'laptop', headers: { authorization: 's3cret', 'x-session-api-key': 's3cret', accept: '*/*' }, list: ['kept'], none: null };
  expect(written(fields)).toMatchObject({
    api_key: '[redacted]',
    key_name: 'laptop',
    headers: { authorization: '[redacted]', 'x-session-api-key': '[redacted]', accept: '*/*' },
    list: ['kept'],
    none: null,
  });
  expect(fields.api_key).toBe('s3cret');
});

test('an error is logged with its causes, and its secret fields are redacted', () => {
  const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { token: 's3cret' });
  const line = written({ error });
  expect(line).toMatchObject({ error: { message: 'outer', token: '[redacted]', cause: { message: 'inner' } } });
  expect(JSON.stringify(line)).not.toContain('s3cret');
});

test('a failure is logged by its message and those of its causes, without stacks', () => {
  const cause = new Error('database or disk is full');
  const error = new Failure('store_unavailable', { reason: { code: 'disk_full' }, retryAfterSeconds: 5 }, { cause });
  expect(written({ error })).toMatchObject({
    error: { message: 'store_unavailable {"reason":{"code":"disk_full"},"retryAfterSeconds":5}: database or disk is full' },
  });
  expect(JSON.stringify(written({ error }))).not.toMatch(/stack|    at /);
});

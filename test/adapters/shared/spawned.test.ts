import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const program = join(import.meta.dirname, 'without-descriptors.ts');

test('a program that can not be started, because no file descriptor is free, is a failure, and does not end the process', async () => {
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, program]);
  expect(stdout.trim().split('\n')).toEqual([
    'provider_failed, EMFILE',
    'provider_failed, EMFILE',
    'runtime_unavailable, EMFILE',
    'EMFILE',
    'later: 0',
  ]);
});

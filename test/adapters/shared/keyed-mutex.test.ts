import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { KeyedMutex } from '../../../src/adapters/shared/keyed-mutex.ts';

test('A key that is always busy keeps no result of its earlier tasks', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const mutex = new KeyedMutex();
  const gate = Promise.withResolvers<void>();
  const held = mutex.runExclusive('key', async () => ({ large: true })).then((result) => new WeakRef(result));
  const busy = mutex.runExclusive('key', () => gate.promise);
  const result = await held;
  // The engine keeps the target of a new reference until the present work of the event loop ends.
  await new Promise(setImmediate);
  collectGarbage();
  expect(result.deref()).toBeUndefined();
  gate.resolve();
  await busy;
});

import { expect, test } from 'vitest';
import { createEventLog } from '../../../src/adapters/store/event-store.ts';
import { migrate } from '../../../src/adapters/store/sqlite/migrate.ts';
import { eventOf, someEvent } from '../../contracts/records.ts';
import { textsOf } from '../../contracts/store.ts';
import { openDb } from './sqlite/harness.ts';

function openLog() {
  const statements: string[] = [];
  const { sqlite, db } = openDb(':memory:', ({ query }) => statements.push(query.sql));
  migrate(sqlite);
  const count = (statement: string): number => statements.filter((sql) => sql === statement).length;
  return { log: createEventLog(db), sqlite, count };
}

test('appends that wait share one commit, and each returns the number of its own last event', async () => {
  const { log, count } = openLog();
  const lasts = await Promise.all(Array.from({ length: 20 }, (_, n) => log.append([someEvent(`${n} a`), someEvent(`${n} b`)])));
  expect(lasts).toEqual(Array.from({ length: 20 }, (_, n) => 2 * n + 2));
  expect(count('COMMIT')).toBe(1);
  expect(textsOf(await log.read({ ownerId: 'ann' }, 0, 100)).slice(0, 3)).toEqual(['0 a', '0 b', '1 a']);
  expect([await log.append([someEvent('alone')]), count('COMMIT')]).toEqual([41, 2]);
});

test('an append that fails leaves those that share its transaction written', async () => {
  const { log } = openLog();
  const refused = log.append([eventOf('conversation_archived', {}), { ...someEvent('bad'), at: 0.5 }]);
  const others = ['one', 'two'].map((text) => log.append([someEvent(text)]));
  await expect(refused).rejects.toThrow('store_unavailable');
  const lasts = await Promise.all(others);
  const read = await log.read({ ownerId: 'ann' }, 0, 9);
  expect([textsOf(read), read.map(({ sequence }) => sequence)]).toEqual([['one', 'two'], lasts]);
});

test('appends of a transaction that does not begin are not tried again, and the next one is written', async () => {
  const { log, sqlite, count } = openLog();
  sqlite.exec('BEGIN');
  const refused = await Promise.allSettled([log.append([someEvent('one')]), log.append([someEvent('two')])]);
  expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(count('BEGIN IMMEDIATE')).toBe(1);
  sqlite.exec('ROLLBACK');
  await log.append([someEvent('three')]);
  expect(textsOf(await log.read({ ownerId: 'ann' }, 0, 9))).toEqual(['three']);
});

import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { applicationId, migrate, versionOf } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';

const steps = ['CREATE TABLE log (step TEXT) STRICT', `INSERT INTO log VALUES ('two')`, `INSERT INTO log VALUES ('three')`];

test('migrate() runs each step once and in order, from any version', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database, steps.slice(0, 2));
  expect([versionOf(database), logOf(database)]).toEqual([2, ['two']]);
  migrate(database, steps);
  migrate(database, steps);
  expect([versionOf(database), logOf(database)]).toEqual([3, ['two', 'three']]);
  expect(database.prepare('PRAGMA application_id').get()).toEqual({ application_id: applicationId });
});

test('migrate() runs all steps or none', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database, steps.slice(0, 1));
  expect(() => migrate(database, [...steps, 'INSERT INTO nowhere VALUES (1)'])).toThrow(/nowhere/);
  expect([versionOf(database), logOf(database), database.isTransaction]).toEqual([1, [], false]);
});

test('migrate() does not change a database of a newer version', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database, steps);
  migrate(database, steps.slice(0, 1));
  expect(versionOf(database)).toBe(3);
});

test('every table is STRICT, so each value has the type of its column', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database);
  const tables = database.prepare(`SELECT name, strict FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`).all();
  expect(tables.length).toBeGreaterThan(4);
  for (const { name, strict } of tables) expect([name, strict]).toEqual([name, 1]);
});

function logOf(database: DatabaseSync): unknown[] {
  return database.prepare('SELECT step FROM log ORDER BY rowid').all().map(({ step }) => step);
}

/** Every table and index, with its columns in their order. */
function schemaOf(database: DatabaseSync): unknown[] {
  const columns = `SELECT m.type, m.name, m.tbl_name, p.name AS column_name, p.type AS column_type
    FROM sqlite_schema AS m LEFT JOIN pragma_table_xinfo(m.name) AS p ORDER BY m.type, m.name, p.cid`;
  return database.prepare(columns).all();
}

test.each([...migrations.keys()].slice(1))('an upgrade from version %i results in the schema of a new database', (version) => {
  const [fresh, upgraded] = [new DatabaseSync(':memory:'), new DatabaseSync(':memory:')];
  migrate(fresh);
  migrate(upgraded, migrations.slice(0, version));
  migrate(upgraded);
  expect(versionOf(upgraded)).toBe(migrations.length);
  expect(schemaOf(upgraded)).toEqual(schemaOf(fresh));
});

test('an upgrade removes the accents of titles in the column for searches only', () => {
  const database = new DatabaseSync(':memory:');
  migrate(database, migrations.slice(0, 2));
  const insert = database.prepare(`
    INSERT INTO conversations (id, owner_id, title, title_folded, sandbox_id, sandbox_spec_id, starts_sandbox, start_status, generation,
      created_at, updated_at, unsettled)
    VALUES (?, 'ann', ?, ?, 'sb', 'node', 1, 'READY', 1, 1, 1, 0)`);
  for (const [id, title] of [['a', 'Résumé'], ['b', 'Shop'], ['c', null]] as const) insert.run(id, title, (title ?? '').toUpperCase());
  migrate(database);
  expect(database.prepare('SELECT title, title_folded FROM conversations ORDER BY id').all().map((row) => Object.values(row)))
    .toEqual([['Résumé', 'RESUME'], ['Shop', 'SHOP'], [null, '']]);
});

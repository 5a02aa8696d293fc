import type { DatabaseSync } from 'node:sqlite';

/**
 * Makes the steps that the database lacks, all of them or none. What was made before is not made again, also when two
 * processes migrate at once: the version is read under the write lock.
 */
export function migrate(database: DatabaseSync, steps: readonly string[], applicationId: number): void {
  if (versionOf(database) >= steps.length) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    for (const step of steps.slice(versionOf(database))) database.exec(step);
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${steps.length}; COMMIT`);
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

export function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

import type { DatabaseSync } from 'node:sqlite';
import { foldTitle } from '../../../domain/conversation.ts';
import { migrations } from './migrations.ts';

/** The file's application id: `Skep` in ASCII. */
export const applicationId = 0x536b6570;

/** Applies all steps or none. Reads the version again under the write lock, since two processes may migrate at once. */
export function migrate(database: DatabaseSync, steps: readonly string[] = migrations): void {
  if (versionOf(database) >= steps.length) return;
  database.function('fold_title', { deterministic: true }, (title) => foldTitle(String(title ?? '')));
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

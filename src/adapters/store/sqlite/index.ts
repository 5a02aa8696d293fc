export { backupSqlite } from './backup.ts';
export type { BackupOptions } from './backup.ts';
export { restoreSqlite } from './restore.ts';
export type { RestoredStore, RestoreOptions } from './restore.ts';
export { createInMemoryStore, createSqliteStore, inspectSqlite } from './store.ts';
export type { SqliteContents, SqliteStoreOptions } from './store.ts';
export { isStoreRefused, requireWritable, StoreRefused } from './data-folder.ts';
export type { RefusalReason } from './data-folder.ts';
export type { StoreWarning } from './shutdown-marker.ts';

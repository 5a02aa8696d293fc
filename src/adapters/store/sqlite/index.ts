export { createInMemoryStore, createSqliteStore, lookIntoSqlite } from './store.ts';
export type { InMemoryStoreOptions, SqliteLook, SqliteStoreOptions } from './store.ts';
export { isStoreRefused, StoreRefused } from './data-folder.ts';
export type { RefusalReason } from './data-folder.ts';

export { createInMemoryStore, createSqliteStore, lookIntoSqlite } from './store.ts';
export type { InMemoryStoreOptions, SqliteLook, SqliteStoreOptions } from './store.ts';
export { isStoreRefused, StoreRefused } from './store-refused.ts';
export type { RefusalReason } from './store-refused.ts';

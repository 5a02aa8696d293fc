export { lookIntoSqlite } from './look.ts';
export type { SqliteLook } from './look.ts';
export { createSqliteStore } from './store.ts';
export type { SqliteStoreOptions } from './store.ts';
export { isStoreRefused, StoreRefused } from './refusal.ts';
export type { RefusalReason } from './refusal.ts';

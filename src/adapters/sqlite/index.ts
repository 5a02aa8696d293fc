export { createSqliteStore } from './store.ts';
export type { SqliteStoreOptions } from './store.ts';
export { isStoreRefused, StoreRefused } from './refusal.ts';
export type { RefusalReason } from './refusal.ts';

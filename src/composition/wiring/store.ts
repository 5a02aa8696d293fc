import type { Store } from '../../ports/store.ts';
import type { StoreOptions } from '../options.ts';
import { unknownChoice } from './own-adapters.ts';

interface OpenStore {
  readonly store: StoreOptions | Store | undefined;
  readonly dataDir: string | undefined;
}

/** Opens the store that the options choose. A ready-made one is closed by whoever made it. */
export async function openStore({ store, dataDir }: OpenStore, closers: AsyncDisposableStack): Promise<Store> {
  const chosen = store ?? (dataDir === undefined ? { kind: 'memory' as const } : { kind: 'sqlite' as const, dataDir });
  if (isReady(chosen)) return chosen;
  const opened = await open(chosen);
  closers.defer(() => opened.close());
  return opened;
}

function isReady(store: StoreOptions | Store): store is Store {
  return typeof store === 'object' && 'sandboxes' in store;
}

async function open(store: StoreOptions): Promise<Store> {
  switch (store.kind) {
    case 'sqlite': {
      const { createSqliteStore } = await import('../../adapters/store/sqlite/index.ts');
      return await createSqliteStore({ dataDir: store.dataDir });
    }
    case 'memory': {
      const { createInMemoryStore } = await import('../../adapters/store/sqlite/index.ts');
      return createInMemoryStore();
    }
    default:
      throw unknownChoice('store', store, 'sqlite or memory as its kind, or is a Store of your own');
  }
}

import type { Store } from '../../../ports/store.ts';
import type { SkepOptions, StoreOptions } from '../../options.ts';
import { unknownChoice } from './unknown-choice.ts';

/** Opens the store that the options choose; a ready-made one is its maker's to close. */
export async function openStore({ store, dataDir }: SkepOptions, closers: AsyncDisposableStack): Promise<Store> {
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
      const { createSqliteStore } = await import('../../../adapters/store/sqlite/index.ts');
      return await createSqliteStore({ dataDir: store.dataDir });
    }
    case 'memory': {
      const { createInMemoryStore } = await import('../../../adapters/store/sqlite/index.ts');
      return createInMemoryStore();
    }
    default:
      throw unknownChoice('store', store, 'sqlite or memory as its kind, or is a Store of your own');
  }
}

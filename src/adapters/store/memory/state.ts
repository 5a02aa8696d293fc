import { Failure } from '../../../domain/failure.ts';

/** What the parts of a memory store share. */
export interface StoreState {
  closed: boolean;
}

export function createStoreState(): StoreState {
  return { closed: false };
}

/** Does the work at once, so that no other call comes in between; fails with `store_unavailable` once closed. */
export async function whileOpen<T>(state: StoreState, work: () => T): Promise<T> {
  if (state.closed) throw new Failure('store_unavailable', { reason: 'it is closed', retryAfterSeconds: 5 });
  return work();
}

import { setImmediate } from 'node:timers/promises';
import type { Connection } from './connection.ts';

const batchSize = 200;

/**
 * Removes the records that `next` names, until it names none. Each batch is a transaction of its own, so that a large
 * purge holds up no other call; a record always goes together with what belongs to it.
 */
export async function purgeInBatches(
  connection: Connection,
  next: (limit: number) => readonly { readonly id: string }[],
  remove: (id: string) => void,
): Promise<void> {
  while (removeBatch(connection, next, remove) === batchSize) await setImmediate();
}

function removeBatch(
  connection: Connection,
  next: (limit: number) => readonly { readonly id: string }[],
  remove: (id: string) => void,
): number {
  return connection.transaction(() => {
    const batch = next(batchSize);
    for (const { id } of batch) remove(id);
    return batch.length;
  });
}

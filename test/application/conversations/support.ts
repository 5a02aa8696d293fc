import type { Store } from '../../../src/ports/store.ts';
import { isFailure, type AnyFailure } from '../../../src/domain/failure.ts';
import type { StartConversationRequest } from '../../../src/application/conversations/conversations.ts';
import { createOne, plain, until, type WorldOptions } from './world.ts';

/** Returns the failure of the call, or null if it succeeds. */
export async function failureOf(promise: Promise<unknown>): Promise<AnyFailure | null> {
  return await promise.then(() => null, (error: unknown) => {
    if (!isFailure(error)) throw error;
    return error;
  });
}

/** A gate that the test opens. */
export function gate() {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  return { opened, open };
}

/** A store in which each write of a conversation with a turn waits for `late` after it. */
export function withLateTurns(late: () => Promise<void> | null) {
  return (made: Store): Store => ({
    ...made,
    conversations: {
      ...made.conversations,
      async replace(...args) {
        const outcome = await made.conversations.replace(...args);
        if (args[0].turn !== null) await late();
        return outcome;
      },
    },
  });
}

/** A conversation that is READY, and what tests read from it. */
export async function createReady(options: WorldOptions = {}, request: Partial<StartConversationRequest> = {}) {
  const world = createOne(options);
  const { conversation: { id, sandboxId } } = await world.conversations.start('me', { ...plain, ...request });
  const record = async () => {
    const found = await world.store.conversations.find(id);
    if (found === null) throw new Error('no record');
    return found;
  };
  const view = async () => await world.conversations.get('me', id);
  /** Waits until no work is left. */
  const rested = async () => await until(record, ({ startStatus, turn, queue }) => startStatus === 'ERROR' || (startStatus === 'READY' && turn === null && queue.length === 0));
  await rested();
  const log = () => world.log(id);
  return { ...world, id, sandboxId, record, view, rested, log };
}

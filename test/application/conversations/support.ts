import type { Store } from '../../../src/ports/store.ts';
import { isFailure, type AnyFailure } from '../../../src/domain/failure.ts';
import type { StartConversationRequest } from '../../../src/application/conversations/conversations.ts';
import type { Conversation } from '../../../src/domain/conversation.ts';
import type { AgentProtocol } from '../../../src/ports/agent-protocol.ts';
import { createMemoryAgentProtocol } from '../../doubles/memory/agent.ts';
import { createMemoryLink } from '../../doubles/memory/agent-link.ts';
import { createMemorySession, type MemoryAgentScript } from '../../doubles/memory/agent-session.ts';
import { calm, createOne, plain, said, until, type WorldOptions } from './world.ts';

/** Returns the failure of the call, or null if it succeeds. */
export async function failureOf(promise: Promise<unknown>): Promise<AnyFailure | null> {
  return await promise.then(() => null, (error: unknown) => {
    if (!isFailure(error)) throw error;
    return error;
  });
}

/** A conversation whose turn an earlier process began. Its agent is still there, and does what the script says when it is taken over. */
export async function createTakeover(
  script: MemoryAgentScript, record: (now: number) => Partial<Conversation>, options: WorldOptions = {},
) {
  const resume: AgentProtocol['resume'] = async ({ client, streams }) =>
    createMemorySession({ id: 's', loaded: true, script, client, link: createMemoryLink(streams) });
  const w = await createReady({ ...options, protocol: { ...createMemoryAgentProtocol(), resume } });
  w.host.executed.at(-1)?.end(0);
  await calm();
  w.runtime.executions.reopen = async () => ({
    stdin: new WritableStream(), stdout: new ReadableStream(), stderr: new ReadableStream(), exited: new Promise(() => {}), durable: true,
    handedOver: { bytes: 0, isCut: false }, forgetBefore: async () => {}, kill: async () => {}, leave: () => {},
  });
  const agent = { sessionId: 's', requestId: 1, stdin: 0, stdout: 0, from: await w.store.events.latest(), context: null };
  const turn = { messageId: 'msg-1', message: said('one'), sandboxVersion: 1, agent };
  const { version, ...before } = await w.record();
  const changed = { ...before, turn, executionStatus: 'running' as const, ...record(w.clock.now()), version: version + 1 };
  await w.store.conversations.replace(changed);
  return w;
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

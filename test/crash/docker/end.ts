import type Docker from 'dockerode';
import { explained } from '../../../src/domain/reason.ts';
import { createSqliteStore } from '../../../src/adapters/store/sqlite/index.ts';
import type { Sandbox, ObservedSandbox } from '../../../src/domain/sandbox.ts';

/** Every record, as the store has it, whether a server has it open or not. */
export async function readRecords(dataDir: string): Promise<readonly Sandbox[]> {
  const store = await createSqliteStore({ dataDir, exclusive: false });
  try {
    return await store.sandboxes.scan(null, 10_000);
  } finally {
    await store.close();
  }
}

/** Every container of an engine that serves nobody else, by the sandbox that it says it is. Throws where two say the same, or one says none. */
export async function readFacts(docker: Docker): Promise<ReadonlyMap<string, ObservedSandbox>> {
  const facts = new Map<string, ObservedSandbox>();
  for (const { Labels, Names, State } of await docker.listContainers({ all: true })) {
    // What made the rules of the firewall stays.
    if (Labels['skep.firewall'] !== undefined) continue;
    const id = Labels['skep.sandbox'];
    if (id === undefined) throw new Error(`a container of no sandbox: ${Names.join()}`);
    if (facts.has(id)) throw new Error(`two containers of ${id}`);
    facts.set(id, { id, state: stateOf(State), exposedUrls: [], reason: explained(State), endedFromOutside: false });
  }
  return facts;
}

function stateOf(state: string): ObservedSandbox['state'] {
  if (state === 'running' || state === 'created') return state;
  return state === 'paused' ? 'frozen' : 'stopped';
}

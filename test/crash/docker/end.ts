import type Docker from 'dockerode';
import { explained } from '../../../src/domain/reason.ts';
import { createSqliteStore } from '../../../src/adapters/store/sqlite/index.ts';
import type { Sandbox, ObservedSandbox, ObservedState } from '../../../src/domain/sandbox.ts';

/** Returns all records of the store, even while a server has it open. */
export async function readRecords(dataDir: string): Promise<readonly Sandbox[]> {
  const store = await createSqliteStore({ dataDir, exclusive: false });
  try {
    return await store.sandboxes.scan(null, 10_000);
  } finally {
    await store.close();
  }
}

/** Returns all containers of the engine by sandbox id. Throws if an id is missing or used twice. */
export async function readFacts(docker: Docker): Promise<ReadonlyMap<string, ObservedSandbox>> {
  const facts = new Map<string, ObservedSandbox>();
  for (const { Labels, Names, State } of await docker.listContainers({ all: true })) {
    // The container that created the firewall rules is kept.
    if (Labels['skep.firewall'] !== undefined) continue;
    const id = Labels['skep.sandbox'];
    if (id === undefined) throw new Error(`a container of no sandbox: ${Names.join()}`);
    if (facts.has(id)) throw new Error(`two containers of ${id}`);
    facts.set(id, { id, state: stateOf(State), exposedUrls: [], reason: explained(State), endedFromOutside: false });
  }
  return facts;
}

function stateOf(state: string): ObservedState {
  if (state === 'running' || state === 'created') return state;
  return state === 'paused' ? 'frozen' : 'stopped';
}

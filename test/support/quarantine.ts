import { createApiKeys } from '../../src/adapters/auth/api-keys/index.ts';
import { createSystemClock } from '../../src/adapters/clock/system-clock.ts';
import { createSystemRandom } from '../../src/adapters/random/system-random.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { putInQuarantine } from '../../src/domain/quarantine.ts';
import { type Client, createClient } from './client.ts';
import { startSandbox, type Server } from './server.ts';

/** Starts a sandbox on the running server and puts it in quarantine. Returns its id and an administrator's client. */
export async function quarantine({ url, dataDir }: Server, call: Client): Promise<{ readonly id: string; readonly admin: Client }> {
  const { id } = await startSandbox(call);
  await call('POST', `/api/v1/sandboxes/${id}/pause`, { pause_kind: 'stop' });
  const store = await createSqliteStore({ dataDir, exclusive: false });
  const stopped = await store.sandboxes.find(id);
  if (stopped === null) throw new Error('no record');
  await store.sandboxes.replace({ ...putInQuarantine(stopped, { keptForMs: 86_400_000, specId: null, ownerId: null }, Date.now()), status: 'PAUSED' });
  const keys = createApiKeys({ keys: store.apiKeys, clock: createSystemClock(), random: createSystemRandom() });
  const { key } = await keys.create({ name: 'root', access: 'admin' });
  await store.close();
  return { id, admin: createClient(url, key) };
}

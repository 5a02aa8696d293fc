import { join } from 'node:path';
import { createHttpServer, type RouterOptions } from '../../../src/adapters/http/index.ts';
import { createProxyServer, type ProxyServerOptions } from '../../../src/adapters/proxy/index.ts';
import { createSystemClock } from '../../../src/adapters/clock/system-clock.ts';
import { createSkep, type SpecOptions } from '../../../src/composition/index.ts';
import { createMemoryAuth } from '../../doubles/memory/index.ts';
import { createClient, type Json, object } from '../../support/client.ts';
import { doublesModule } from '../../support/doubles-module.ts';
import { removeFolder, temporaryFolder } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const guest = [process.execPath, join(import.meta.dirname, 'guest.ts')];

export const guestSpec: SpecOptions = {
  id: 'guest',
  command: guest,
  ports: [{ name: 'WEB', port: 8000 }, { name: 'CLOSED', port: 8001 }, { name: 'OPEN', port: 8002, public: true }],
  ready: { http: '/', port: 8000, within: '60s' },
  wake_on_access: 'freeze',
};

/** A spec whose sandboxes are also resumed after a stop, with a public port whose program checks the key of the sandbox. */
export const deepSpec: SpecOptions = {
  ...guestSpec, id: 'deep', wake_on_access: 'stop', ports: [{ name: 'WEB', port: 8000, public: true, wants_session_key: true }],
};

export interface WorldOptions {
  readonly specs?: readonly SpecOptions[];
  readonly proxy?: ProxyServerOptions;
  readonly server?: RouterOptions;
}

/** Starts a deployment with the process runtime, its API, and its proxy. */
export async function createWorld({ specs = [guestSpec], proxy: proxyOptions = {}, server: serverOptions = {} }: WorldOptions = {}) {
  const root = await temporaryFolder();
  const clock = createSystemClock();
  const auth = createMemoryAuth(clock);
  const lines: { readonly level: string; readonly message: string }[] = [];
  const write = (level: string) => (fields: object, message: string) => void lines.push({ ...fields, level, message });
  const logger = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  const skep = await createSkep({
    runtime: { kind: 'process', root: join(root, 'sandboxes') }, specs, auth, clock, logger, modules: [doublesModule({})],
  });
  const keys = {
    ann: auth.issue({ userId: 'ann', keyName: 'ann-laptop', access: 'full' }),
    ben: auth.issue({ userId: 'ben', keyName: 'ben-ci', access: 'full' }),
    reader: auth.issue({ userId: 'ann', keyName: 'ann-dashboard', access: 'read' }),
    admin: auth.issue({ userId: 'root', keyName: 'admin', access: 'admin' }),
  };
  const proxy = await createProxyServer(skep, { port: 0, domain: 'localhost', ...proxyOptions });
  const address = { url: proxy.url, domain: proxyOptions.domain ?? 'localhost' };
  const api = await createHttpServer(skep, { port: 0, proxy: address, ...serverOptions });
  const ann = createClient(api.url, keys.ann);
  const sandbox = async (id: string): Promise<Json> => object(await ann('GET', `/api/v1/sandboxes/${id}`));

  return {
    skep, auth, keys, api, proxy, ann, lines, sandbox,
    client: (key: string | null) => createClient(api.url, key),
    /** Starts a sandbox for Ann, and returns its id and key when it is RUNNING. */
    async start(spec = 'guest'): Promise<{ readonly id: string; readonly key: string }> {
      const { id } = object(await ann('POST', '/api/v1/sandboxes', { sandbox_spec_id: spec }));
      const found = await until(() => sandbox(String(id)), ({ status }) => status === 'RUNNING', 60_000);
      return { id: String(id), key: String(found['session_api_key']) };
    },
    async link(id: string, port = 8000, seconds = 600): Promise<string> {
      return String(object(await ann('POST', `/api/v1/sandboxes/${id}/ports/${port}/links`, { expires_in_seconds: seconds }))['url']);
    },
    /** Returns what the guest has received so far, as Latin-1. */
    async received(id: string): Promise<string> {
      const answer = await fetch(`${proxy.url}/${id}/8000/received`, { headers: { 'X-Session-API-Key': keys.ann } });
      return (await answer.json()) as string;
    },
    async close() {
      await Promise.all([api.close(), proxy.close()]);
      for (const { id, ownerId } of (await skep.sandboxes.search(null, {}, { after: null, limit: 100 })).items) await skep.sandboxes.delete(ownerId, id);
      await skep.close();
      await removeFolder(root);
    },
  };
}

export type World = Awaited<ReturnType<typeof createWorld>>;

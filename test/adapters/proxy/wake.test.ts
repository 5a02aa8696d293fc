import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { Failure } from '../../../src/domain/failure.ts';
import { createProxyServer } from '../../../src/adapters/proxy/index.ts';
import { until } from '../../support/until.ts';
import { codeOf, send, type SendOptions, withKey } from './send.ts';
import { createWorld, deepSpec, guestSpec, type World } from './world.ts';

let world: World;
let port: number;
beforeAll(async () => {
  world = await createWorld({ specs: [guestSpec, deepSpec], proxy: { failedLoginsPerMinute: 100_000 } });
  ({ port } = world.proxy);
});
afterAll(() => world.close());

describe('wake on access', () => {
  let frozen: string;
  const path = (): string => `/api/v1/sandboxes/${frozen}`;
  const statusOf = async (): Promise<unknown> => (await world.sandbox(frozen))['status'];
  const resumptions = async (): Promise<readonly unknown[]> => {
    const { items } = (await world.ann('GET', '/api/v1/events?kinds=sandbox_moved&limit=100')).body as { items: { sandbox_id: string; data: { to: string } }[] };
    return items.filter(({ sandbox_id: of, data }) => of === frozen && data.to === 'RESUMING');
  };
  beforeEach(async () => {
    ({ id: frozen } = await world.start());
    await world.ann('POST', `${path()}/pause`, { pause_kind: 'freeze' });
    return async () => void (await world.ann('DELETE', path()));
  });

  test('100 requests at once resume a frozen sandbox once, and all succeed', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(port, `/${frozen}/8000/x`, withKey(world.keys.ann))));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 200));
    expect(await resumptions()).toMatchObject([{ actor: 'skep', status_reason: { code: 'woken_by_access' } }]);
  });

  test('a WebSocket with the key of the sandbox resumes it', async () => {
    const record = (await world.skep.sandboxes.get('ann', frozen)).sessionApiKey;
    const socket = new WebSocket(`ws://127.0.0.1:${port}/${frozen}/8000/`, withKey(record));
    await once(socket, 'open');
    socket.terminate();
    expect(await statusOf()).toBe('RUNNING');
  });

  test('requests without access to the port and requests to the API do not resume a sandbox', async () => {
    const { search } = new URL(await world.link(frozen));
    const tries: [string, SendOptions][] = [
      [`/${frozen}/8000/`, {}], [`/${frozen}/8000/`, withKey('wrong')], [`/${frozen}/8000/`, withKey(world.keys.ben)], [`/${frozen}/8000/`, withKey(world.keys.reader)],
      [`/${frozen}/8000/?skep_link=x`, {}], [`/${frozen}/8002/`, {}], [`/${frozen}/5173/`, withKey(world.keys.ann)], [`/${frozen}/8000/${search}`, {}],
    ];
    expect(await Promise.all(tries.map(async ([target, options]) => (await send(port, target, options)).status))).toEqual([401, 401, 404, 403, 401, 409, 404, 302]);
    for (const at of ['', '/usage']) await world.ann('GET', `${path()}${at}`);
    await world.ann('GET', '/api/v1/sandboxes/search');
    expect(await statusOf()).toBe('PAUSED');
  });

  test('a client that may not resume a sandbox waits for its resume, and does not undo a pause after it', async () => {
    const { sandboxes } = world.skep;
    await sandboxes.resume('ann', frozen);
    await sandboxes.pause('ann', frozen, 'stop');
    const resumed = sandboxes.resume('ann', frozen);
    await until(statusOf, (status) => status === 'RESUMING');
    const stranger = {
      key: null,
      identify: async () => {
        await resumed;
        await sandboxes.pause('ann', frozen, 'freeze');
        throw new Failure('unauthorized', {});
      },
    };
    await expect(sandboxes.openPort(frozen, 8002, stranger)).rejects.toMatchObject({ code: 'sandbox_not_running' });
    expect(await statusOf()).toBe('PAUSED');
  });

  test('a stopped sandbox is resumed only if its spec wakes it after a stop', async () => {
    await world.ann('POST', `${path()}/resume`);
    await world.ann('POST', `${path()}/pause`, { pause_kind: 'stop' });
    const answer = await send(port, `/${frozen}/8000/`, withKey(world.keys.ann));
    expect([answer.status, codeOf(answer)]).toEqual([409, 'sandbox_not_running']);
    const { id: deep } = await world.start('deep');
    await world.ann('POST', `/api/v1/sandboxes/${deep}/pause`, { pause_kind: 'stop' });
    expect((await send(port, `/${deep}/8000/`, withKey(world.keys.ann))).status).toBe(200);
    await world.ann('DELETE', `/api/v1/sandboxes/${deep}`);
  });
});

test.each([10, 3])('visitors of a public port without a credential cannot use all %i connections', async (max) => {
  const { id, key } = await world.start('deep');
  const proxy = await createProxyServer(world.skep, { port: 0, connectionsPerSandbox: max });
  try {
    const strangers = Array.from({ length: max - 1 }, () => new WebSocket(`ws://127.0.0.1:${proxy.port}/${id}/8000/`).on('error', () => {}));
    await Promise.all(strangers.map((socket) => once(socket, 'open')));
    expect((await send(proxy.port, `/${id}/8000/`, withKey('wrong'))).status).toBe(429);
    expect((await send(proxy.port, `/${id}/8000/`, withKey(key))).status).toBe(200);
    strangers[0]?.close();
    await until(() => send(proxy.port, `/${id}/8000/`), ({ status }) => status === 200);
  } finally {
    await proxy.close();
  }
});

test('open connections are limited, keep the sandbox RUNNING, and end when the proxy is closed', async () => {
  const rest = { ...guestSpec, rest: { freeze_after: '3s' } };
  const small = await createWorld({ specs: [rest], proxy: { connectionsPerSandbox: 2, drainMs: 2000 } });
  try {
    const started = await small.start();
    const connect = (): WebSocket => new WebSocket(`ws://127.0.0.1:${small.proxy.port}/${started.id}/8000/`, withKey(started.key));
    const sockets = [connect(), connect()];
    await Promise.all(sockets.map((socket) => once(socket, 'open')));
    const third = connect();
    const [, response] = (await once(third, 'unexpected-response')) as [unknown, { statusCode: number; headers: Record<string, string> }];
    expect([response.statusCode, response.headers['retry-after']]).toEqual([429, '5']);
    const answer = await send(small.proxy.port, `/${started.id}/8000/`, withKey(started.key));
    expect([answer.status, codeOf(answer)]).toEqual([429, 'rate_limited']);

    // The sandbox is active while a socket is open, and is frozen after the sockets are closed.
    const first = Date.parse(String((await small.sandbox(started.id))['last_active_at']));
    await until(() => small.sandbox(started.id), ({ last_active_at: at }) => Date.parse(String(at)) - first > 4000, 30_000);
    expect((await small.sandbox(started.id))['status']).toBe('RUNNING');
    sockets[0]?.terminate();
    const last = sockets[1];
    const closed = last === undefined ? [] : once(last, 'close');
    await small.proxy.close();
    await closed;
    await until(() => small.sandbox(started.id), ({ status }) => status === 'PAUSED', 30_000);
    await expect(send(small.proxy.port, '/')).rejects.toThrow('ECONNREFUSED');
  } finally {
    await small.close();
  }
});

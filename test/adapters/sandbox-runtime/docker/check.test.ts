import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { labels } from '../../../../src/adapters/sandbox-runtime/docker/labels.ts';
import { createDockerRuntime, type DockerRuntimeOptions } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { type SandboxRuntime, unknownUsage } from '../../../../src/ports/sandbox-runtime.ts';
import { launchOf } from './programs.ts';

const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

function open(options: Partial<DockerRuntimeOptions>): SandboxRuntime {
  const runtime = createDockerRuntime({ deployment: 'main', env: {}, ...options });
  undo.push(() => runtime.close());
  return runtime;
}

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.push(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const json =
  (status: number, body: unknown): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

test('tells how to fix an unreachable engine, and does not reveal its address', async () => {
  const socket = join(tmpdir(), 'no-such-folder', 'docker.sock');
  const details = [await open({ host: `unix://${socket}` }).check(), await open({ host: await closedPort() }).check()];
  for (const { ok, detail } of details) {
    expect(ok).toBe(false);
    expect(detail).toMatch(/start Docker, or say where it is with SKEP_DOCKER_HOST/);
    expect(detail).not.toMatch(/no-such-folder|127\.0\.0\.1|\n/);
  }
  const runtime = open({ host: `unix://${socket}` });
  const calls = [
    () => runtime.inspect('a'),
    () => runtime.list(),
    () => runtime.start(launchOf(null), () => {}, neverAborts),
    () => runtime.remove('a'),
    () => runtime.provide(launchOf(null).spec, () => {}, neverAborts),
  ];
  for (const call of calls) {
    await expect(call()).rejects.toMatchObject({ code: 'runtime_unavailable' });
  }
});

test('fails with runtime_timeout if the engine does not answer', async () => {
  const host = await serve(() => {});
  const runtime = open({ host, callTimeoutMs: 200 });
  await expect(runtime.inspect('a')).rejects.toMatchObject({ code: 'runtime_timeout' });
  expect(await runtime.check()).toMatchObject({ ok: false, detail: expect.stringMatching(/did not answer within 0\.2 s/) });
});

test("rejects a start with the signal's reason while the engine does not answer", async () => {
  const runtime = open({ host: await serve(() => {}), callTimeoutMs: 2_000 });
  const controller = new AbortController();
  const started = runtime.start(launchOf(null), () => {}, controller.signal);
  const reason = new Error('no longer wanted');
  controller.abort(reason);
  await expect(started).rejects.toBe(reason);
});

test('reports an engine that is too old or not Docker', async () => {
  expect(await open({ host: await serve(json(200, { Version: '17.05', ApiVersion: '1.29' })) }).check()).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/17\.05 is too old .*1\.40/),
  });
  expect(await open({ host: await serve(json(404, {})) }).check()).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/returned the status 404; check that it is Docker/),
  });
  await expect(open({ host: await serve(json(500, { message: 'at /var/lib/docker' })) }).list()).rejects.toMatchObject({
    code: 'runtime_unavailable',
    message: expect.not.stringContaining('/var/lib'),
  });
});

/** What the engine says about the running container of the sandbox `a`. */
const running = {
  Id: 'c', Name: '/skep_main_a', Config: { Labels: { 'skep.deployment': 'main', 'skep.sandbox': 'a' } },
  State: { Status: 'running', Error: '' }, NetworkSettings: { Ports: {} },
};

test("reports that it can't freeze after the engine has refused a freeze", async () => {
  const runtime = open({
    host: await serve((request, response) => {
      const path = request.url ?? '';
      if (path.includes('/pause')) return json(500, { message: 'cannot pause container: no control groups' })(request, response);
      if (path.includes('/version')) return json(200, { Version: '28', ApiVersion: '1.48' })(request, response);
      return json(200, path.includes('/info') ? { CgroupDriver: 'none', SecurityOptions: ['name=seccomp'] } : running)(request, response);
    }),
  });
  expect(runtime.capabilities).toEqual({ freeze: true });
  await expect(runtime.freeze('a')).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(runtime.capabilities).toEqual({ freeze: false });
  expect(await runtime.check()).toMatchObject({ ok: true, detail: expect.stringMatching(/can't freeze sandboxes/) });
});

test('reports a freeze that runc has refused for now as freeze_refused', async () => {
  const runtime = open({
    host: await serve((request, response) => {
      const isPause = request.url?.includes('/pause') === true;
      const refusal = { message: 'Cannot pause container c: OCI runtime pause failed: unable to freeze: unknown' };
      return isPause ? json(500, refusal)(request, response) : json(200, running)(request, response);
    }),
  });
  await expect(runtime.freeze('a')).rejects.toMatchObject({ code: 'runtime_unavailable', context: { reason: { code: 'freeze_refused' } } });
  expect(runtime.capabilities).toEqual({ freeze: true });
});

test('reports a log whose connection breaks while its end is sought, and knows no usage of a container that is removed meanwhile', async () => {
  const runtime = open({
    host: await serve((request, response) => {
      const path = request.url ?? '';
      if (path.includes('/logs')) response.writeHead(200).write('x', () => response.socket?.destroy());
      else json(path.includes('size=') || path.includes('/stats') ? 404 : 200, { ...running, State: { ...running.State, Running: true } })(request, response);
    }),
  });
  await expect(runtime.logs('a', { tailBytes: 10 }, neverAborts)).rejects.toMatchObject({ code: 'runtime_unavailable' });
  expect(await runtime.usage('a')).toEqual(unknownUsage);
});

test('asks only for the volumes, to measure a sandbox with a read-only root', async () => {
  const asked: string[] = [];
  const host = await serve((request, response) => {
    const path = request.url ?? '';
    if (!path.includes('/system/df')) return json(200, { ...running, HostConfig: { ReadonlyRootfs: true }, SizeRw: 5 })(request, response);
    asked.push(path);
    const volumes = ['a', 'b'].map((id) => ({ Labels: { [labels.partOf]: id }, UsageData: { Size: 70 } }));
    return json(200, { Volumes: volumes })(request, response);
  });
  expect((await open({ host }).usage('a')).diskBytes).toBe(75);
  expect(asked).toEqual([expect.stringMatching(/\/system\/df\?type=volume$/)]);
});

test('a resume during a restart of the engine can be tried again', async () => {
  const exited = { ...running, State: { Status: 'exited', StartedAt: '2026-11-29T10:00:00Z' }, HostConfig: {}, NetworkSettings: { Networks: {}, Ports: {} } };
  for (const [status, message] of [[503, 'the daemon shuts down'], [500, 'dial unix /run/containerd/containerd.sock: connection refused']] as const) {
    const host = await serve((request, response) => {
      const isStart = request.url?.includes('/start') === true;
      return isStart ? json(status, { message })(request, response) : json(200, exited)(request, response);
    });
    const launch = { ...launchOf(null, { isolation: { network: 'none', user: null, readOnlyRoot: false } }), id: 'a' };
    await expect(open({ host }).resume(launch, neverAborts)).rejects.toMatchObject({ code: 'runtime_unavailable' });
  }
});

test('reports that the firewall rules could not be made', async () => {
  const host = await serve((request, response) => {
    const path = request.url ?? '';
    if (path.includes('/version')) return json(200, { Version: '28', ApiVersion: '1.48' })(request, response);
    if (path.includes('/info')) return json(200, { SecurityOptions: ['name=seccomp'] })(request, response);
    return json(200, { State: { Status: 'exited', ExitCode: 3 } })(request, response);
  });
  expect(await open({ host }).check()).toMatchObject({ ok: true, detail: expect.stringMatching(/isolated sandboxes reach .*docker logs skep_firewall/) });
  expect((await open({ host, firewall: false }).check()).detail).not.toMatch(/isolated/);
});

test('refuses an invalid configuration', async () => {
  expect(make({ deployment: 'Main_1' })).toThrow(/deployment is a lower-case DNS label/);
  for (const host of ['ftp://engine', 'tcp://', '://'])
    expect(make({ host })).toThrow(/unix:\/\/\/path, tcp:\/\/host:port or ssh:\/\/user@host/);
  expect(make({ env: { DOCKER_HOST: 'tcp://engine:2376', DOCKER_CERT_PATH: '/no/such/folder' } })).toThrow(
    /ca\.pem, cert\.pem and key\.pem/,
  );
  expect(make({ env: { DOCKER_CONTEXT: 'gone', HOME: '/no/such/home' } })).toThrow(/no context \\"gone\\"/);
  const folder = await mkdtemp(join(tmpdir(), 'skep-docker-config-'));
  undo.push(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'config.json'), '{"currentContext": "default"}');
  expect(make({ configDir: folder })).not.toThrow();
});

function make(options: Partial<DockerRuntimeOptions>): () => SandboxRuntime {
  return () => createDockerRuntime({ deployment: 'main', env: {}, ...options });
}

async function closedPort(): Promise<string> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `tcp://127.0.0.1:${port}`;
}

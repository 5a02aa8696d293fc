import { afterAll, afterEach, expect, test } from 'vitest';
import { resolveOwner } from '../../../../src/adapters/sandbox-runtime/docker/container-files.ts';
import { isImageName, PulledLayers, reasonOfPullError, registryOf } from '../../../../src/adapters/sandbox-runtime/docker/images.ts';
import { messageOf, reasonOfStartError } from '../../../../src/adapters/sandbox-runtime/docker/engine.ts';
import { signalName } from '../../../../src/adapters/sandbox-runtime/signal-numbers.ts';
import { defaultResources } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

test('registryOf returns the registry that Docker would use', () => {
  const hub = 'https://index.docker.io/v1/';
  expect(['node', 'node:26', 'acme/app', 'docker.io/library/node'].map(registryOf)).toEqual([hub, hub, hub, hub]);
  expect(registryOf('ghcr.io/acme/app:1@sha256:00')).toBe('ghcr.io');
  expect(registryOf('localhost/app')).toBe('localhost');
  expect(registryOf('registry:5000/app')).toBe('registry:5000');
});

test('isImageName refuses invalid image names', () => {
  for (const name of ['node:26', 'registry:5000/a/b@sha256:0123', 'Ghcr.io/a_b']) expect(isImageName(name)).toBe(true);
  for (const name of ['', ' node', 'a/../b', 'a//b', 'a?b', 'a b', '-a', 'ä']) expect(isImageName(name)).toBe(false);
});

const codeOf = (message: string) => reasonOfPullError('ghcr.io/acme/app', message, 'ghcr.io', null).code;

test('a pull that the registry denies needs a login, in the words of each engine', () => {
  const denials = [
    'error from registry: denied\ndenied', 'denied', 'Head "https://ghcr.io/v2/acme/app/manifests/1": denied: denied', 'Head "...": unauthorized',
    'pull access denied for app, repository does not exist or may require \'docker login\': denied: requested access to the resource is denied',
  ];
  expect(denials.map(codeOf)).toEqual(denials.map(() => 'image_login_required'));
  expect(codeOf('Head "https://ghcr.io/v2/": dial tcp 192.0.2.1:443: connect: permission denied')).toBe('image_pull_failed');
  expect(codeOf('toomanyrequests: You have reached your unauthenticated pull rate limit.')).toBe('image_pull_failed');
  expect(messageOf(new Error('(HTTP code 403) unexpected - error from registry: denied'))).toBe('error from registry: denied');
});

test('the progress of a pull adds up its layers', () => {
  const layers = new PulledLayers();
  const none = { code: 'pulling_image', image: 'node:26', layers: 0, doneLayers: 0, bytes: null, doneBytes: null };
  expect(layers.progress('node:26')).toEqual(none);
  layers.note({ status: 'Pulling from library/node', id: '26' });
  for (const id of ['a', 'b', 'c']) layers.note({ id, status: 'Pulling fs layer' });
  layers.note({ id: 'a', status: 'Already exists' });
  layers.note({ id: 'b', status: 'Downloading', progressDetail: { current: 30e6, total: 60e6 } });
  layers.note({ id: 'c', status: 'Downloading', progressDetail: { current: 1e6, total: 2e6 } });
  layers.note({ id: 'c', status: 'Download complete' });
  expect(layers.progress('node:26')).toEqual({ ...none, layers: 3, doneLayers: 1, bytes: 62e6, doneBytes: 32e6 });
});

test('signals and engine errors are translated into reasons', () => {
  expect([3 - 128, 0, 9, 15].map(signalName)).toEqual([null, null, 'SIGKILL', 'SIGTERM']);
  expect(reasonOfStartError('OCI runtime create failed: exec: "nope": executable file not found in $PATH: unknown')).toEqual({
    code: 'command_not_found', command: 'nope',
  });
  expect(reasonOfStartError('unable to find user ann: no matching entries in passwd file')).toEqual({
    code: 'user_not_found', kind: 'user', name: 'ann',
  });
  const refused = reasonOfStartError('error mounting "/var/lib/docker/volumes/x" to rootfs');
  expect(refused.code).toBe('launch_refused');
  expect(JSON.stringify(refused)).not.toContain('/var/lib');
});

test('resolveOwner reads only the first of the users in an endless list', async () => {
  const list = `${':\n'.repeat(30_000)}ann:x:1001:1002::/:/bin/sh\n`;
  expect(await resolveOwner('ann', async () => list)).toBeNull();
});

test('resolveOwner finds the same uid and gid as the engine', async () => {
  const files = new Map([
    ['/etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nann:x:1001:1002::/home/ann:/bin/sh\n'],
    ['/etc/group', 'root:x:0:\nstaff:x:50:ann\n'],
  ]);
  const read = async (path: string): Promise<string> => files.get(path) ?? '';
  const owners = await Promise.all(
    ['', 'root', 'ann', '1001', '7', 'ann:staff', 'ann:9', '7:8', 'bob', 'ann:nobody'].map((user) => resolveOwner(user, read)),
  );
  expect(owners).toEqual([
    { uid: 0, gid: 0 },
    { uid: 0, gid: 0 },
    { uid: 1001, gid: 1002 },
    { uid: 1001, gid: 1002 },
    { uid: 7, gid: 0 },
    { uid: 1001, gid: 50 },
    { uid: 1001, gid: 9 },
    { uid: 7, gid: 8 },
    null,
    null,
  ]);
});

describeWithDocker('The Docker engine', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  test('is not asked for an image without a name, or with an invalid one', async () => {
    const runtime = engine.open();
    const provide = (image: string | null) =>
      runtime.provide(launchOf(shell('true'), { image }).spec, () => {}, neverAborts);
    expect(await provide(null)).toEqual({ kind: 'refused', reason: { code: 'image_not_named' } });
    expect(await provide('a b')).toEqual({ kind: 'refused', reason: { code: 'image_name_invalid', image: 'a b' } });
  });

  test('accepts minMemoryBytes, and refuses less', async () => {
    const runtime = engine.open();
    const { minMemoryBytes: min = 0 } = runtime;
    const starting = [min - 1, min].map(async (memoryBytes) => {
      const launch = launchOf(shell('exec sleep 100000'), { resources: { ...defaultResources, memoryBytes } });
      return [launch.id, (await runtime.start(launch, () => {}, neverAborts)).reason] as const;
    });
    const [[, refusal], [id]] = [await starting[0]!, await starting[1]!];
    expect(refusal).toMatchObject({ code: 'launch_refused' });
    expect((await engine.container(id).inspect()).HostConfig).toMatchObject({ Memory: min });
  });
});

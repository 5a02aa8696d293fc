import { expect, test } from 'vitest';
import { resolveOwner } from '../../../../src/adapters/sandbox-runtime/docker/container-files.ts';
import { PulledLayers, registryOf, whyUnusable } from '../../../../src/adapters/sandbox-runtime/docker/images.ts';
import { details } from '../../../../src/adapters/sandbox-runtime/docker/status-details.ts';

test('the registry of an image is that which Docker would ask', () => {
  const hub = 'https://index.docker.io/v1/';
  expect(['node', 'node:26', 'acme/app', 'docker.io/library/node'].map(registryOf)).toEqual([hub, hub, hub, hub]);
  expect(registryOf('ghcr.io/acme/app:1@sha256:00')).toBe('ghcr.io');
  expect(registryOf('localhost/app')).toBe('localhost');
  expect(registryOf('registry:5000/app')).toBe('registry:5000');
});

test('what is no name of an image is not asked for', () => {
  for (const name of ['node:26', 'registry:5000/a/b@sha256:0123', 'Ghcr.io/a_b']) expect(whyUnusable(name)).toBeNull();
  for (const name of ['', ' node', 'a/../b', 'a//b', 'a?b', 'a b', '-a', 'ä']) expect(whyUnusable(name)).toMatch(/no name of an image/);
  expect(whyUnusable(null)).toMatch(/names no image/);
});

test('the progress of a pull is a line on its layers', () => {
  const progress = new PulledLayers();
  const line = (): string => details.pulling('node:26', progress.progress());
  expect(line()).toBe('pulling node:26');
  progress.note({ status: 'Pulling from library/node', id: '26' });
  for (const id of ['a', 'b', 'c']) progress.note({ id, status: 'Pulling fs layer' });
  progress.note({ id: 'a', status: 'Already exists' });
  progress.note({ id: 'b', status: 'Downloading', progressDetail: { current: 30e6, total: 60e6 } });
  progress.note({ id: 'c', status: 'Downloading', progressDetail: { current: 1e6, total: 2e6 } });
  progress.note({ id: 'c', status: 'Download complete' });
  expect(line()).toBe('pulling node:26: 1 of 3 layers, 32 of 62 MB');
});

test('an end is told in words', () => {
  expect(details.exited(3, 'sh')).toBe('exited with code 3');
  expect(details.exited(137, 'sh')).toBe('exited with code 137 (SIGKILL)');
  expect(details.exited(127, 'agent')).toMatch(/not found: agent$/);
  expect(details.notRunnable('OCI runtime create failed: exec: "nope": executable file not found in $PATH: unknown')).toBe(
    'command not found: nope',
  );
  expect(details.notRunnable('unable to find user ann: no matching entries in passwd file')).toBe('its image has no user ann');
  expect(details.notRunnable('error mounting "/var/lib/docker/volumes/x" to rootfs')).not.toContain('/var/lib');
});

test('the owner of what a user writes is found as the engine finds it', async () => {
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

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { labels } from '../src/adapters/sandbox-runtime/docker/labels.ts';

/** How to get each image with Docker only. On Debian, `.ci/engine` installs an engine and creates all images. */
const images = {
  'skep-test/tiny': 'docker pull busybox && docker tag busybox skep-test/tiny',
  'skep-test/debian':
    String.raw`printf 'FROM debian:bookworm-slim\nRUN apt-get update && apt-get install -y git\n' | docker build -t skep-test/debian -`,
} as const;

export interface EngineNeeds {
  readonly image: keyof typeof images;
  /** Whether the program `docker` is needed too. */
  readonly usesCli?: boolean;
}

const timeoutMs = 10_000;

/** Returns what is missing and how to get it, in one line. Null if nothing is missing. */
export async function whyNotOnEngine({ image, usesCli = false }: EngineNeeds): Promise<string | null> {
  const install = 'install Docker (https://docs.docker.com/engine/install), or run `sudo bash .ci/engine` on Debian';
  const docker = new Docker({ timeout: timeoutMs });
  try {
    await docker.ping();
  } catch {
    return `no Docker engine answers; ${install}`;
  }
  try {
    await docker.getImage(image).inspect();
  } catch (error) {
    if (!(error instanceof Error && 'statusCode' in error && error.statusCode === 404)) throw error;
    return `the engine has no image ${image}; make it: ${images[image]}`;
  }
  if (!usesCli) return null;
  return promisify(execFile)('docker', ['--version']).then(() => null, () => `the program docker does not run; ${install}`);
}

/**
 * Removes what a closed deployment leaves on the engine, because its next process could use it: its pool members and its networks.
 */
export async function clearUp(deployment: string): Promise<void> {
  const docker = new Docker();
  const filters = { label: [`${labels.deployment}=${deployment}`] };
  for (const { Id } of await docker.listContainers({ all: true, filters })) await docker.getContainer(Id).remove({ force: true, v: true });
  for (const { Id } of await docker.listNetworks({ filters })) await docker.getNetwork(Id).remove();
}

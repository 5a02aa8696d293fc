import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { shellWord } from '../shell-functions.ts';
import { ContainerFiles, root } from './container-files.ts';
import type { Engine } from './engine.ts';
import { tarOfOne } from './single-entry-tar.ts';

// Every user who may inspect a container sees its environment. So secrets are in a file. A shell reads and removes it before it becomes the
// sandbox's command. If the root is read-only, /tmp is a volume.
const folder = '/tmp';
const name = '.skep-secrets';
const path = `${folder}/${name}`;

/** The `$0` of the shell. It marks a container that reads the file. */
const shellName = 'skep-secrets';

const beginning = `. ${path} || exit 126; rm -f ${path} 2>/dev/null || : > ${path}; exec "$@"`;

/** Returns a command that reads the secrets and then becomes the given command. Needs `/bin/sh` in the image. */
export function commandWithSecrets(command: readonly string[]): string[] {
  return ['/bin/sh', '-c', beginning, shellName, ...command];
}

/**
 * Puts the secrets into a stopped container for its next start, if its command reads them. Such a container does not start without the
 * file, and another one would never remove it. An adoption may have changed the spec, so the container decides. Only the user of the
 * command can read the file.
 */
export async function putSecrets(
  engine: Engine, { Id, Config, HostConfig }: Docker.ContainerInspectInfo, secrets: Readonly<Record<string, string>>,
): Promise<void> {
  if (Config.Entrypoint?.[3] !== shellName) return;
  const files = new ContainerFiles(engine, Id);
  const owner = (await files.owner(Config.User)) ?? root;
  const lines = Object.entries(secrets).map(([variable, value]) => `export ${variable}=${shellWord(value)}\n`);
  const content = Buffer.from(lines.join(''));
  const inVolume = HostConfig.ReadonlyRootfs === true;
  const file = { name: inVolume ? name : path.slice(1), mode: 0o600, ...owner, size: content.length };
  await files.unpack({ path: inVolume ? folder : '/' }, tarOfOne(file, Readable.from([content])));
}

import type Docker from 'dockerode';
import { ContainerFiles, root } from './container-files.ts';
import type { Engine } from './engine.ts';

// The engine shows the environment of a container to whoever may inspect it. So secrets come in a file, which a shell reads and removes
// before it becomes the sandbox's command. Where the root is read-only, /tmp is a volume.
const folder = '/tmp';
const name = '.skep-secrets';
const path = `${folder}/${name}`;

/** The name under which the shell runs: by it a container is known that reads the file. */
const shellName = 'skep-secrets';

const beginning = `. ${path} || exit 126; rm -f ${path} 2>/dev/null || : > ${path}; exec "$@"`;

/** Returns the command that reads the secrets, and then becomes the given one. It needs `/bin/sh` in the image. */
export function commandWithSecrets(command: readonly string[]): string[] {
  return ['/bin/sh', '-c', beginning, shellName, ...command];
}

/**
 * Puts the secrets into a container that does not run, for its next start, if it was made to read them: it does not start without the
 * file, and another container would never remove it. So the container decides, not the spec, which an adoption may have changed. Only
 * the user of its command may read the file.
 */
export async function putSecrets(
  engine: Engine, { Id, Config, HostConfig }: Docker.ContainerInspectInfo, secrets: Readonly<Record<string, string>>,
): Promise<void> {
  if (Config.Entrypoint?.[3] !== shellName) return;
  const files = new ContainerFiles(engine, Id);
  const owner = (await files.owner(Config.User)) ?? root;
  const lines = Object.entries(secrets).map(([variable, value]) => `export ${variable}=${quoted(value)}\n`);
  const inVolume = HostConfig.ReadonlyRootfs === true;
  const file = { name: inVolume ? name : path.slice(1), type: 'file' as const, mode: 0o600, ...owner, content: lines.join('') };
  await files.put(inVolume ? folder : '/', [file]);
}

/** Returns the text as one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

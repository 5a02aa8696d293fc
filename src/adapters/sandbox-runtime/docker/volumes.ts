import type Docker from 'dockerode';
import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { type Connection, statusOf } from './engine.ts';
import { containerName, labels } from './labels.ts';

const purposes = ['work', 'tmp'] as const;

export function volumeNames(deployment: string, id: string): string[] {
  return purposes.map((purpose) => `${containerName(deployment, id)}_${purpose}`);
}

/**
 * Where the root is read-only, volumes for what has to be written. A tmpfs would not do: it does not outlive a stop, and what the
 * engine unpacks into one is lost.
 */
export function volumeMounts(deployment: string, { id, spec }: SandboxLaunch): Docker.MountSettings[] {
  if (!spec.isolation.readOnlyRoot) return [];
  const owned = { [labels.deployment]: deployment, [labels.partOf]: id };
  const targets = [spec.workingDir, ...(spec.workingDir === '/tmp' ? [] : ['/tmp'])];
  return volumeNames(deployment, id)
    .slice(0, targets.length)
    .map((Source, index) => ({
      Type: 'volume',
      Source,
      Target: targets[index] ?? '/tmp',
      VolumeOptions: { NoCopy: false, Labels: owned, DriverConfig: { Name: 'local', Options: {} } },
    }));
}

/** Removes the volumes of a sandbox, whose container is gone. */
export async function removeVolumes({ call, docker, deployment }: Connection, id: string): Promise<void> {
  for (const name of volumeNames(deployment, id)) {
    const volume = docker.getVolume(name);
    try {
      const { Labels: found } = await call((abortSignal) => volume.inspect({ abortSignal }));
      if (found?.[labels.deployment] !== deployment || found[labels.partOf] !== id) continue;
      await call((abortSignal) => volume.remove({ abortSignal }));
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }
}

import type Docker from 'dockerode';
import type { SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { type Engine, unlessMissing } from './engine.ts';
import { containerName, labels } from './labels.ts';

const purposes = ['work', 'tmp'] as const;

function volumeNames(deployment: string, id: string): string[] {
  return purposes.map((purpose) => `${containerName(deployment, id)}_${purpose}`);
}

/**
 * Returns the volumes of a sandbox whose root is read-only, for what has to be written. A tmpfs would not do: its files are lost when
 * the sandbox stops, and so is what the engine unpacks into it.
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

/** Removes the volumes of a sandbox whose container is gone. */
export async function removeVolumes({ call, docker, deployment }: Engine, id: string): Promise<void> {
  for (const name of volumeNames(deployment, id)) {
    const volume = docker.getVolume(name);
    const found = await unlessMissing(call((abortSignal) => volume.inspect({ abortSignal })));
    if (found?.Labels?.[labels.deployment] !== deployment || found.Labels[labels.partOf] !== id) continue;
    await unlessMissing(call((abortSignal) => volume.remove({ abortSignal })));
  }
}

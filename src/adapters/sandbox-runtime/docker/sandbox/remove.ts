import type { Connection } from '../connect.ts';
import { statusOf } from '../engine-errors.ts';

/** Removes a container, whatever it does. Answers when it is gone. Idempotent. */
export async function removeContainer({ docker, call }: Connection, containerId: string): Promise<void> {
  const container = docker.getContainer(containerId);
  try {
    await call((abortSignal) => container.remove({ force: true, v: true, abortSignal }));
  } catch (error) {
    if (statusOf(error) === 404) return;
    if (statusOf(error) !== 409) throw error;
    // Somebody else removes it.
    await call((abortSignal) => container.wait({ condition: 'removed', abortSignal })).catch((gone: unknown) => {
      if (statusOf(gone) !== 404) throw gone;
    });
  }
}

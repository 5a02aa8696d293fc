import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/**
 * Returns the child when it runs. Rejects with the system error if it could not be started. Before that, its streams must not be used: Node
 * creates none if no file descriptor is free. Output is not lost if the caller reads as soon as this returns.
 */
export async function spawned<Child extends ChildProcess>(child: Child): Promise<Child> {
  await once(child, 'spawn');
  // From now on, an error is only about a signal that could not be sent.
  child.on('error', () => {});
  return child;
}

import type { Sandbox } from '../../domain/sandbox.ts';
import { readyDeadline } from '../../domain/sandbox-lifecycle.ts';
import type { Clock } from '../../ports/clock.ts';

/** Does the work under a signal that fires when the start or resumption of the sandbox is too late. */
export async function untilTooLate<T>(clock: Clock, sandbox: Sandbox, work: (late: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const deadline = readyDeadline(sandbox);
  const cancel = deadline === null ? () => {} : clock.after(Math.max(0, deadline - clock.now()), () => late.abort());
  try {
    return await work(late.signal);
  } finally {
    cancel();
  }
}

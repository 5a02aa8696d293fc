import { isFailureOf } from '../../../domain/failure.ts';
import type { HostExecution } from '../execution-host.ts';
import { refusedExecution } from '../execution-streams.ts';
import { isForkError } from '../script-result.ts';
import { unavailable } from './engine.ts';

/** Returns the failure of a command that the engine can't have begun, since it did not answer before. */
export function notBegun(error: unknown): unknown {
  if (!isFailureOf(error, 'runtime_unavailable')) return error;
  return unavailable({ code: 'command_not_begun', cause: error.context.reason }, error, error.context.retryAfterSeconds);
}

/** Returns a command that the image can't run, by the engine's message. Throws `runtime_unavailable` if the image is not the cause. */
export function refusedBy(message: string): HostExecution {
  if (isForkError(message)) throw unavailable({ code: 'process_limit_reached' });
  // The engine could not reach its containerd, which starts processes.
  if (message.endsWith(': unavailable')) {
    const failure = unavailable('its containerd does not answer; see the log of the engine', new Error(message));
    // Without a connection, nothing was sent.
    throw message.startsWith('connection error: ') ? notBegun(failure) : failure;
  }
  if (/no such file or directory|not found/i.test(message)) {
    return refusedExecution(127, 'the image has no /bin/sh, which running a command in its sandboxes needs');
  }
  return refusedExecution(126, message === '' ? 'the engine could not begin it' : message);
}

import { constants } from 'node:os';
import { explained, type Reason } from '../../../domain/reason.ts';

const asReason = (reason: Reason): Reason => reason;

/** Every reason of this runtime for a state or a line of progress. */
export const reasons = {
  invalidId: asReason({ code: 'invalid_id' }),
  startingCommand: asReason({ code: 'starting_command' }),
  noCommand: asReason({ code: 'command_not_named' }),
  commandNotFound: (command: string) => asReason({ code: 'command_not_found', command }),
  commandNotExecutable: (command: string) => asReason({ code: 'command_not_executable', command }),
  commandTooLong: explained('its command and its environment are too long'),
  commandHasNul: explained('its command or its environment holds a NUL character'),
  exited: (status: number) => exited(status),
  hostRestarted: asReason({ code: 'host_restarted' }),
  killed: asReason({ code: 'processes_killed' }),
  leaderEnded: (status: number | null) => asReason({ code: 'main_process_ended', cause: status === null ? null : exited(status) }),
} as const;

/** A shell reports a signal as its number and 128. */
function exited(status: number): Reason {
  const signal = Object.entries(constants.signals).find(([, number]) => status === 128 + number)?.[0] ?? null;
  return { code: 'process_exited', exitCode: signal === null ? status : null, signal, program: null };
}

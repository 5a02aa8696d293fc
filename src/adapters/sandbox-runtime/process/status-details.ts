import { constants } from 'node:os';

/** Every text that this runtime puts into an `ObservedSandbox` or a line of progress, under the name of its reason. */
export const details = {
  invalidId: 'its id is not a DNS label',
  startingCommand: 'starting its command',
  noCommand: 'its spec has no command, and the process runtime runs no image',
  commandNotFound: (program: string) => `command not found: ${program}`,
  commandNotExecutable: (program: string) => `command not executable: ${program}`,
  commandTooLong: 'its command and its environment are too long',
  commandHasNul: 'its command or its environment holds a NUL character',
  exited: (status: number) => describeExit(status),
  hostRestarted: 'the host was restarted while it ran',
  killed: 'its processes were killed',
  leaderKilled: 'the process that leads it was killed, and others run on',
  leftBehind: (status: number) => `its command ${describeExit(status)}, and processes that it left behind run on`,
} as const;

/** How a command ended. A shell reports a signal as its number and 128. */
function describeExit(status: number): string {
  const signal = Object.entries(constants.signals).find(([, number]) => status === 128 + number)?.[0];
  return signal === undefined ? `exited with code ${status}` : `killed by ${signal}`;
}

import { constants } from 'node:os';
import { Failure } from '../../domain/failure.ts';

const numbers = new Map<string, number>(Object.entries(constants.signals));

/** Returns the name of a signal, such as `SIGKILL`. Null if no signal has the number. */
export function signalName(number: number): string | null {
  return [...numbers].find(([, one]) => one === number)?.[0] ?? null;
}

/** Returns the number of a signal. Throws `invalid_request` if no signal has the name. */
export function signalNumber(name: string): number {
  const number = numbers.get(name);
  if (number !== undefined) return number;
  const reason = { code: 'unknown_option', options: [...numbers.keys()] } as const;
  throw new Failure('invalid_request', { problems: [{ argument: 'signal', reason }] });
}

/** Returns the number of the signal with which an engine stops a container. An image names it as `SIGUSR1`, `USR1` or `10`. */
export function stopSignalNumber(stopSignal: string): number {
  return numbers.get(`SIG${stopSignal.replace(/^SIG/, '')}`) ?? Number(stopSignal);
}

import type { Logger } from '../../../src/ports/logger.ts';

const silent = (): void => {};

/** A logger that says nothing. */
export function createSilentLogger(): Logger {
  return { debug: silent, info: silent, warn: silent, error: silent };
}

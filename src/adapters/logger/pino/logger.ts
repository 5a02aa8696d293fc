import { pino, type DestinationStream, type Level } from 'pino';
import type { Logger } from '../../../ports/logger.ts';
import { redacted, withoutSecrets } from './redact.ts';

export interface PinoLoggerOptions {
  readonly level: Level | 'silent';
  /** Default: standard error, so that standard output stays for what a person asked for. */
  readonly destination?: DestinationStream;
}

/** JSON lines through pino. Fields whose name tells of a secret are redacted, at the top and one level below. */
export function createPinoLogger({ level, destination = pino.destination({ fd: 2, sync: false }) }: PinoLoggerOptions): Logger {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: (error: Error) => withoutSecrets(pino.stdSerializers.errWithCause(error)) },
    },
    destination,
  );
  return {
    debug: (fields, message) => logger.debug(redacted(fields), message),
    info: (fields, message) => logger.info(redacted(fields), message),
    warn: (fields, message) => logger.warn(redacted(fields), message),
    error: (fields, message) => logger.error(redacted(fields), message),
  };
}

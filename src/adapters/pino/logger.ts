import { pino, type DestinationStream, type Level } from 'pino';
import type { Logger } from '../../ports/logger.ts';

export interface PinoLoggerOptions {
  readonly level: Level | 'silent';
  /** Default: standard error, so that standard output stays for what a person asked for. */
  readonly destination?: DestinationStream;
}

const secretFields = ['authorization', 'cookie', '["x-session-api-key"]', 'apiKey', 'api_key', 'sessionApiKey', 'session_api_key', 'token', 'password', 'secret', 'key'];

/** JSON lines through pino. Fields whose name tells of a secret are redacted, at the top and one level below. */
export function createPinoLogger({ level, destination = pino.destination({ fd: 2, sync: false }) }: PinoLoggerOptions): Logger {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.errWithCause },
      redact: { paths: secretFields.flatMap((name) => [name, name.startsWith('[') ? `*${name}` : `*.${name}`]), censor: '[redacted]' },
    },
    destination,
  );
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

import { type DestinationStream, type Level, pino } from 'pino';
import { isFailure } from '../../domain/failure.ts';
import type { LogFields, Logger } from '../../ports/logger.ts';
import { inSnakeCase } from '../shared/snake-case.ts';

interface PinoLoggerOptions {
  readonly level: Level | 'silent';
  /** Default: standard error. */
  readonly destination?: DestinationStream;
}

/** The most bytes that wait while standard error does not take them. */
const maxWaitingBytes = 1 << 20;

/**
 * Opens standard error for the log, because standard output is for the results of commands. A log that can't be written, for example to a
 * full disk, loses lines; it must not end the program, or keep it from ending. If it is not `sync`, a line is written a moment later, and
 * the program must call `flushSync` before it exits.
 */
export function openStandardError(sync: boolean): ReturnType<typeof pino.destination> {
  const destination = pino.destination({ dest: 2, sync, maxLength: maxWaitingBytes });
  const flushSync = destination.flushSync.bind(destination);
  // It repeats a failed write for ever, also at the end of the process.
  destination.on('error', () => (destination.flushSync = () => {}));
  destination.on('write', () => (destination.flushSync = flushSync));
  return destination;
}

/** Writes JSON lines with field names as in the HTTP API. Redacts fields with the name of a secret, at the top level and one below. */
export function createPinoLogger({ level, destination = openStandardError(true) }: PinoLoggerOptions): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redacted },
      serializers: {
        error: (error: Error) => withoutSecrets(errorFields(error)),
        reason: inSnakeCase,
        context: inSnakeCase,
      },
    },
    destination,
  );
}

const secretNames = new Set([
  'authorization', 'cookie', 'x-session-api-key', 'apiKey', 'api_key', 'sessionApiKey', 'session_api_key', 'token',
  'password', 'secret', 'key',
]);

const censored = '[redacted]';

/** Returns the logged fields of the error. A failure is expected, so it has no stack: only its message and the messages of its causes. */
function errorFields(error: Error): unknown {
  return isFailure(error) ? { message: pino.stdSerializers.err(error).message } : pino.stdSerializers.errWithCause(error);
}

/** Redacts the fields. Runs for every line, so it copies only if needed; pino's own redaction triples the time for a line. */
function redacted(fields: LogFields): LogFields {
  let copy: Record<string, unknown> | null = null;
  for (const name in fields) {
    const value = fields[name];
    const shown = secretNames.has(name) ? censored : withoutSecrets(value);
    if (shown !== value) (copy ??= { ...fields })[name] = shown;
  }
  return copy ?? fields;
}

/** Returns the value with its own secret fields redacted. Errors are redacted later, by the serializer. */
function withoutSecrets(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Error) return value;
  const names = Object.keys(value).filter((name) => secretNames.has(name));
  return names.length === 0 ? value : { ...value, ...Object.fromEntries(names.map((name) => [name, censored])) };
}

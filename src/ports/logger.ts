export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Writes structured log lines. A method returns at once and never throws: a log that can't be written must not fail a request. Callers pass
 * no secret; an adapter may also redact fields by their names. The port has no `close`: the creator of the logger flushes it.
 */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  /** A field `error` holds an `Error`, which is written with its causes. The adapter filters by level. */
  error(fields: LogFields, message: string): void;
}

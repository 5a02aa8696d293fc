export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured log lines. Callers pass no secrets; fields with a secret's name are redacted. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  /** `error` in the fields is written with its causes. */
  error(fields: LogFields, message: string): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured log lines. No secret may be handed to it; what slips through is redacted by name. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  /** `error` in the fields is written with its causes. */
  error(fields: LogFields, message: string): void;
}

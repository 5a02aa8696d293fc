/**
 * Why a data folder is not opened.
 *
 * - `newer`: a newer version of the program wrote it.
 * - `locked`: another process has it open.
 * - `migration_due`: an older version wrote it, and it can't be brought up to date while a server has it open.
 * - `unusable`: the folder can't be made, read or written.
 * - `damaged`: the database file is not one, or not this program's.
 */
export type RefusalReason = 'newer' | 'locked' | 'migration_due' | 'unusable' | 'damaged';

const marker = Symbol.for('skep.store-refused');

/**
 * The data folder can't be opened, and nothing in it was changed. The message is for the person who starts the program:
 * it names the folder and says what to do.
 */
export class StoreRefused extends Error {
  readonly [marker] = true;
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StoreRefused';
    this.reason = reason;
  }
}

/** Recognises a refusal by its marker, so that two copies of the package understand each other's. */
export function isStoreRefused(error: unknown): error is StoreRefused {
  return typeof error === 'object' && error !== null && marker in error;
}

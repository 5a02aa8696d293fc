import assert from 'node:assert/strict';
import { type FailureCode, isFailure, isFailureOf } from '../../src/domain/failure.ts';

/**
 * A requirement for every adapter of a port. Suites are lists of cases and use no test framework, so that the author of an
 * adapter can run them with any framework: `for (const { name, run } of suite) test(name, run)`. If the framework has a time limit, it
 * must be longer than {@link waitLimitMs}: `test(name, run, 120_000)`.
 */
export interface ContractCase {
  readonly name: string;
  /** Rejects with an `AssertionError` if the adapter breaks the contract. */
  readonly run: () => Promise<void>;
}

/** Runs a case and closes its harness. If the harness can't be closed, the case fails. */
export async function runAndClose(run: () => Promise<void>, close: () => Promise<void>): Promise<void> {
  const failed = await run().then(() => null, (error: unknown) => ({ error }));
  try {
    await close();
  } catch (cause) {
    const message = `the harness can't be closed: ${cause instanceof Error ? cause.message : String(cause)}`;
    if (failed === null) throw new Error(message, { cause });
    if (failed.error instanceof Error) failed.error.message += `; and ${message}`;
  }
  if (failed !== null) throw failed.error;
}

/** Runs assertions that depend on a trait of the harness. A failure names the trait, because its value may be wrong. */
export async function decidedBy<T extends object, K extends keyof T & string>(
  traits: T, trait: K, assertions: (value: T[K]) => Promise<void> | void,
): Promise<void> {
  try {
    await assertions(traits[trait]);
  } catch (error) {
    if (error instanceof Error) error.message = `(decided by the trait ${trait}: ${String(traits[trait])}) ${error.message}`;
    throw error;
  }
}

/** The time limit of every wait in a suite, in milliseconds. */
export const waitLimitMs = 60_000;

/** Waits for the promise. Rejects with an `AssertionError` that says for what it waited if that takes longer than the time limit. */
export async function withTimeout<T>(what: string, waited: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new assert.AssertionError({ message: `timed out: ${what}` })), waitLimitMs);
  return await Promise.race([waited, promise]).finally(() => clearTimeout(timer));
}

/** Waits for the call to reject with an error that is accepted. Otherwise fails with a message that says what happened instead. */
export async function assertFails(call: Promise<unknown>, accepts: (error: unknown) => boolean, expected: string): Promise<void> {
  const result = await call.then(() => 'it succeeds', (error: unknown) => (accepts(error) ? null : `it fails with ${textOf(error)}`));
  if (result !== null) throw new assert.AssertionError({ message: `${expected}, but ${result}` });
}

/** Waits for the call to fail with this code. `what` names the call if it is one of several. */
export async function assertFailure(call: Promise<unknown>, code: FailureCode, what = 'the call'): Promise<void> {
  await assertFails(call, (error) => isFailureOf(error, code), `${what} fails with ${code}`);
}

/** Waits for the call to reject with this error, for example the reason of its signal. */
export async function assertRejects(call: Promise<unknown>, reason: Error, what = 'the call'): Promise<void> {
  await assertFails(call, (error) => error === reason, `${what} rejects with the error "${reason.message}"`);
}

/** Names an error in a message. */
export function textOf(error: unknown): string {
  return isFailure(error) ? `${error.code} ${JSON.stringify(error.context)}` : String(error);
}

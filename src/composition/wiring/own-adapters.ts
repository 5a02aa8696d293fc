import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Returns what a factory in the options makes, and closes it with the deployment if it has a method `close`. Anything else is
 * returned as it is: a ready-made adapter is closed by whoever made it.
 */
export async function made<T, D>(given: T | ((deps: D) => T | Promise<T>), deps: D, closers: AsyncDisposableStack): Promise<T> {
  if (!isFactory(given)) return given;
  const adapter = await given(deps);
  if (isClosable(adapter)) closers.defer(() => adapter.close());
  return adapter;
}

function isFactory<T, D>(given: T | ((deps: D) => T | Promise<T>)): given is (deps: D) => T | Promise<T> {
  return typeof given === 'function';
}

function isClosable(adapter: unknown): adapter is { close(): Promise<void> | void } {
  return typeof adapter === 'object' && adapter !== null && 'close' in adapter && typeof adapter.close === 'function';
}

/** Returns the error for an option that names no adapter, which only a caller without types can pass. */
export function unknownChoice(option: string, value: unknown, takes: string): TypeError {
  const named = typeof value === 'object' && value !== null ? Object.values(value).find((member) => typeof member === 'string') : value;
  return new TypeError(`createSkep: the option ${option} names ${JSON.stringify(named)}; it takes ${takes}.`);
}

/** Makes a folder that is removed with the deployment. */
export async function temporaryFolder(name: string, closers: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `skep-${name}-`));
  closers.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

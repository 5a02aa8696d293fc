import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bind } from 'inversify';
import type { AdapterDeps, Own } from '../options.ts';
import { provide, type Token, tokens } from './tokens.ts';

/** Whether the option is an adapter, or a factory of one, and no choice among Skep's own. Every such adapter has the member. */
export function isOwn<T, Deps = AdapterDeps>(given: unknown, member: keyof T & string): given is Own<T, Deps> {
  return typeof given === 'function' || (typeof given === 'object' && given !== null && member in given);
}

/**
 * Binds the token to an adapter that is given ready-made, or to what a factory makes. The latter is closed with the deployment if it
 * has a method `close`; a ready-made adapter is closed by whoever made it.
 */
export function provideOwn<T, D>(bind: Bind, target: Token<T>, deps: Token<D>, given: Own<T, D>): void {
  provide(bind, target, [deps, tokens.closers], async (deps, closers) => {
    if (!isFactory(given)) return given;
    const adapter = await given(deps);
    if (isClosable(adapter)) closers.defer(() => adapter.close());
    return adapter;
  });
}

function isFactory<T, D>(given: Own<T, D>): given is (deps: D) => T | Promise<T> {
  return typeof given === 'function';
}

function isClosable(adapter: unknown): adapter is { close(): Promise<void> | void } {
  return typeof adapter === 'object' && adapter !== null && 'close' in adapter && typeof adapter.close === 'function';
}

/** Makes a folder that is removed with the deployment. */
export async function temporaryFolder(name: string, closers: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `skep-${name}-`));
  return closers.adopt(folder, () => rm(folder, { recursive: true, force: true }));
}

import type { Bind } from 'inversify';
import type { Token } from './token.ts';

type TokensOf<Args extends readonly unknown[]> = { readonly [I in keyof Args]: Token<Args[I]> };

/**
 * Binds a token to what the factory makes, once. The dependencies are named in the order of the factory's arguments: a
 * wrong one, a missing one or a wrong order does not compile, which inversify alone would let pass.
 */
export function provide<T, Args extends readonly unknown[]>(
  bind: Bind,
  target: Token<T>,
  dependencies: TokensOf<Args>,
  factory: (...args: Args) => T | Promise<T>,
): void {
  const ids = dependencies.map(({ id }) => id);
  bind<T>(target.id)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tokens above are typed by the arguments
    .toResolvedValue((...args: unknown[]) => factory(...(args as unknown as Args)), ids)
    .inSingletonScope();
}

/** Binds a token to what is there already. */
export function provideValue<T>(bind: Bind, target: Token<T>, value: T): void {
  bind<T>(target.id).toConstantValue(value);
}

type UseCase<D, A extends readonly never[] = never> = (deps: D, ...args: A) => unknown;

export type Bound<U> = {
  readonly [K in keyof U]: U[K] extends (deps: never, ...args: infer A) => infer R ? (...args: A) => R : never;
};

export function bindUseCases<D, U extends Readonly<Record<string, UseCase<D>>>>(deps: D, useCases: U): Bound<U> {
  const bound = Object.entries(useCases).map(([name, useCase]) => [name, (...args: never) => useCase(deps, ...args)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says the same as the code above
  return Object.fromEntries(bound) as Bound<U>;
}

import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Store } from '../ports/store.ts';

type UseCase<D, A extends readonly never[] = never> = (deps: D, ...args: A) => unknown;

export type Bound<U> = {
  readonly [K in keyof U]: U[K] extends (deps: never, ...args: infer A) => infer R ? (...args: A) => R : never;
};

export function bindUseCases<D, U extends Readonly<Record<string, UseCase<D>>>>(deps: D, useCases: U): Bound<U> {
  const bound = Object.entries(useCases).map(([name, useCase]) => [name, (...args: never) => useCase(deps, ...args)]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type says the same as the code above
  return Object.fromEntries(bound) as Bound<U>;
}

/** The dependencies that all use cases and reconcilers share. */
export interface CoreDeps {
  readonly store: Store;
  readonly runtime: SandboxRuntime;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

import type { Clock } from '../ports/clock.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Store } from '../ports/store.ts';

/** The dependencies that all use cases and reconcilers share. */
export interface CoreDeps {
  readonly store: Store;
  readonly runtime: SandboxRuntime;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

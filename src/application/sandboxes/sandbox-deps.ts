import type { SandboxLimits } from '../../domain/sandbox-limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { ExecutionReconciler } from '../executions/execution-reconciler.ts';
import type { DiskWatch } from './disk-watch.ts';
import type { WhenFull } from './make-room.ts';
import type { SandboxPool } from './sandbox-pool.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';
import type { SandboxSpecs } from './sandbox-specs.ts';

/** What everything about sandboxes works with. */
export interface SandboxDeps {
  readonly store: SandboxStore;
  readonly conversations: ConversationStore;
  readonly executions: Pick<ExecutionReconciler, 'keepsAwake'>;
  readonly runtime: SandboxRuntime;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What the use cases of sandboxes work with. Times are in milliseconds. */
export interface SandboxesDeps extends SandboxDeps {
  readonly specs: SandboxSpecs;
  readonly pool: SandboxPool;
  readonly reconciler: SandboxReconciler;
  readonly disk: Pick<DiskWatch, 'pressure'>;
  readonly limits: SandboxLimits;
  readonly whenFull: WhenFull;
  /** How long a sandbox is idle at least before it makes room for another. */
  readonly minIdleMs: number;
  /** How long to wait for a pause, a resumption or a deletion. Then the status on the way is returned. */
  readonly answerWithinMs: number;
}

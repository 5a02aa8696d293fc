import type { Page, PageRequest } from '../../domain/page.ts';
import { type Caller, scopeOf } from '../../domain/principal.ts';
import type { SandboxLimits } from '../../domain/admission-limits.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxUsage } from '../../ports/sandbox-runtime.ts';
import type { SandboxFilter } from '../../ports/sandbox-store.ts';
import type { Secrets } from '../../ports/secrets.ts';
import type { CoreDeps, Bound } from '../use-cases.ts';
import type { ExecutionReconciler } from '../executions/execution-reconciler.ts';
import { adoptSandbox } from './adopt-sandbox.ts';
import { deleteSandbox } from './delete-sandbox.ts';
import type { DiskWatch } from './disk-watch.ts';
import type { WhenFull } from './admit-sandbox.ts';
import { pauseSandbox } from './pause-sandbox.ts';
import { readLogs } from './read-logs.ts';
import { resumeSandbox } from './resume-sandbox.ts';
import type { SandboxPool } from './sandbox-pool.ts';
import { authorizePort, createPortLink, isPortAddress, notePortActivity, openPort } from './sandbox-ports.ts';
import type { SandboxReconciler } from './sandbox-reconciler.ts';
import { getSandbox } from './sandbox-records.ts';
import type { SandboxSpecs } from './sandbox-specs.ts';
import { extendSandboxTimeout, setSandboxTimeout } from './set-sandbox-timeout.ts';
import type { StartStatistics } from './start-statistics.ts';
import { checkParameters, limitsResources, startSandbox, startSandboxWithId } from './start-sandbox.ts';
import { awaitRunning } from './reconcile-until.ts';
import { wakeSandbox } from './wake-sandbox.ts';

export type { OpenPort, PortAccess, PortGrant, PortVisitor } from './sandbox-ports.ts';
export type { StartSandboxRequest } from './start-sandbox.ts';

export const sandboxUseCases = {
  start: startSandbox,
  startWithId: startSandboxWithId,
  awaitRunning,
  checkParameters,
  get: ({ store }: SandboxUseCaseDeps, caller: Caller | null, id: string): Promise<Sandbox> => getSandbox(store, caller, id),
  /** Returns the sandboxes, newest first unless the filter says otherwise. Reads the store only. */
  search: ({ store }: SandboxUseCaseDeps, caller: Caller | null, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>> =>
    store.sandboxes.search(scopeOf(caller), filter, page),
  /** Returns the resources that the sandbox uses now. Throws `sandbox_not_found`, `runtime_unavailable` or `runtime_timeout`. */
  usage: async ({ store, runtime }: SandboxUseCaseDeps, caller: Caller | null, id: string): Promise<SandboxUsage> =>
    runtime.usage((await getSandbox(store, caller, id)).instanceId),
  /** Returns whether the runtime applies the resource limits of specs. */
  limitsResources,
  logs: readLogs,
  pause: pauseSandbox,
  resume: resumeSandbox,
  wake: wakeSandbox,
  setTimeout: setSandboxTimeout,
  extendTimeout: extendSandboxTimeout,
  delete: deleteSandbox,
  adopt: adoptSandbox,
  authorizePort,
  openPort,
  notePortActivity,
  isPortAddress,
  createPortLink,
};

/** The use cases of sandboxes. A start takes the owner, the others the caller. Sandboxes outside the scope of the caller are not found. */
export type Sandboxes = Bound<typeof sandboxUseCases>;

/** The deps that the use cases of sandboxes, the reconciler and the services of the sweep share. */
export interface SandboxDeps extends CoreDeps {
  readonly executionReconciler: Pick<ExecutionReconciler, 'keepsAwake'>;
  readonly startStatistics: StartStatistics;
}

/** The dependencies of the use cases of sandboxes. Times are in milliseconds. */
export interface SandboxUseCaseDeps extends SandboxDeps {
  readonly specs: SandboxSpecs;
  readonly pool: SandboxPool;
  readonly reconciler: SandboxReconciler;
  readonly diskWatch: Pick<DiskWatch, 'pressure'>;
  readonly secrets: Secrets;
  readonly limits: SandboxLimits;
  readonly whenFull: WhenFull;
  /** The minimum idle time before a sandbox is paused to make room. */
  readonly minIdleMs: number;
  /** How long to wait for a pause, a resumption or a deletion. Afterwards the present status is returned. */
  readonly answerWithinMs: number;
  /** The resumptions by access, by sandbox id. All who access a sandbox wait for the same one. */
  readonly pendingResumes: Map<string, Promise<Sandbox>>;
}

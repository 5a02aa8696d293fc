import type { EventActor } from './event.ts';
import type { Reason } from './reason.ts';
import type { SandboxSpec, SandboxPort } from './sandbox-spec.ts';

export const sandboxStatuses = ['STARTING', 'RUNNING', 'PAUSING', 'PAUSED', 'RESUMING', 'ERROR', 'MISSING'] as const;

export type SandboxStatus = (typeof sandboxStatuses)[number];

export const pauseKinds = ['freeze', 'stop'] as const;

/** `freeze` keeps memory and processes; `stop` frees the memory and keeps the files. */
export type PauseKind = (typeof pauseKinds)[number];

/** Who paused a sandbox, and why. For a sandbox in ERROR or MISSING that is being resumed: why it was so. */
export interface PausedBy {
  readonly actor: EventActor;
  readonly reason: Reason | null;
  /** The version of the record that the pause was written with. */
  readonly version: number;
  /**
   * When the pause began, in milliseconds since the epoch. Absent in older records, for a sandbox in ERROR or MISSING, and if the sandbox
   * has run since.
   */
  readonly since?: number | undefined;
  /** True if it was in ERROR or MISSING. If the runtime refuses the resumption, it is in ERROR. */
  readonly hasFailed?: true | undefined;
}

export function pauseOf({ pausedBy }: Pick<Sandbox, 'pausedBy'>): PausedBy | null {
  return pausedBy?.hasFailed === true ? null : pausedBy;
}

export interface RefusalBackOff {
  /** How often in a row the runtime refused to pause or to resume the sandbox. */
  readonly times: number;
  /** When Skep tries again by itself, in milliseconds since the epoch. */
  readonly retryAt: number;
}

/** Where a port of the spec can be reached from outside the sandbox. */
export interface ExposedUrl {
  readonly name: string;
  readonly url: string;
  /** The port inside the sandbox, as the spec names it. */
  readonly port: number;
}

/** The owner and the desired state. Only the runtime knows what really runs. Times are in milliseconds since the epoch. */
export interface Sandbox {
  readonly id: string;
  /** Its id in the runtime. A sandbox from a pool keeps the id that it had there. */
  readonly instanceId: string;
  /** {@link unowned} while it waits in a pool. */
  readonly ownerId: string;
  /** The spec as it was at the start, with the start's parameters. A later change of the configuration does not change what runs. */
  readonly spec: SandboxSpec;
  /** Set by its owner, to find it again. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: SandboxStatus;
  /** Why it has this status, or what happens right now. */
  readonly statusReason: Reason | null;
  /** When the status was entered. The idle policy counts from here. */
  readonly statusSince: number;
  /** When the time limit of its start began: with a start slot, or earlier if it needs none or the runtime failed. Null until then. */
  readonly startingSince: number | null;
  /** How it is to be paused (PAUSING) or is paused (PAUSED, RESUMING); null otherwise. */
  readonly pauseKind: PauseKind | null;
  /** Who paused it; null unless it is PAUSING, PAUSED or RESUMING. */
  readonly pausedBy: PausedBy | null;
  /** Null if the runtime carried out the last request. */
  readonly refused: RefusalBackOff | null;
  readonly sessionApiKey: string;
  readonly exposedUrls: readonly ExposedUrl[];
  /** Every write raises it by one. A write that was decided on an earlier version has no effect. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly lastActiveAt: number;
  /** When it was deleted. No caller sees it from then on. */
  readonly deletedAt: number | null;
  /** When everything of it was removed from the runtime. */
  readonly removedAt: number | null;
}

/** The owner of pool members. No caller has this id. */
export const unowned = '';

export function isPooled({ ownerId }: Sandbox): boolean {
  return ownerId === unowned;
}

/** A sandbox that is to be started. It has no key yet: it gets a new one, or that of a pool member. */
export interface PlannedSandbox {
  readonly id: string;
  readonly ownerId: string;
  readonly spec: SandboxSpec;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly now: number;
}

export interface NewSandbox extends PlannedSandbox {
  readonly sessionApiKey: string;
}

export function newSandbox({ now, metadata = {}, ...given }: NewSandbox): Sandbox {
  return {
    ...given,
    metadata,
    instanceId: given.id,
    status: 'STARTING',
    statusReason: null,
    statusSince: now,
    startingSince: null,
    pauseKind: null,
    pausedBy: null,
    refused: null,
    exposedUrls: [],
    version: 1,
    createdAt: now,
    updatedAt: now,
    lastActiveAt: now,
    deletedAt: null,
    removedAt: null,
  };
}

/**
 * - `absent`: the runtime has nothing of the sandbox.
 * - `created`: it exists and never ran.
 * - `running`: its processes run.
 * - `frozen`: its processes exist and are frozen.
 * - `stopped`: no process runs; the files exist.
 */
export type ObservedState = 'absent' | 'created' | 'running' | 'frozen' | 'stopped';

/** What the runtime reports of a sandbox. */
export interface ObservedSandbox {
  readonly id: string;
  readonly state: ObservedState;
  /** Known while it runs or is frozen. */
  readonly exposedUrls: readonly ExposedUrl[];
  /** How it ended, or why it could not start. */
  readonly reason: Reason | null;
  /**
   * True if a user of the machine or the engine stopped it, so it may run again with its files. False for a crash, also one by a signal
   * whose sender is unknown.
   */
  readonly endedFromOutside: boolean;
}

export function absentSandbox(id: string, reason: Reason | null = null): ObservedSandbox {
  return { id, state: 'absent', exposedUrls: [], reason, endedFromOutside: false };
}

export function exposedPort({ spec }: Pick<Sandbox, 'spec'>, port: number): SandboxPort | null {
  return spec.ports.find((one) => one.port === port) ?? null;
}

/** Returns true if a request for a port resumes the paused sandbox. A stopped one has lost its memory, so `freeze` does not allow it. */
export function isWokenByAccess({ spec, pauseKind }: Pick<Sandbox, 'spec' | 'pauseKind'>): boolean {
  const { wakeOnAccess, rest: { timeoutPause } } = spec;
  return timeoutPause?.wakesOnAccess === true || wakeOnAccess === 'stop' || (wakeOnAccess === 'freeze' && pauseKind === 'freeze');
}

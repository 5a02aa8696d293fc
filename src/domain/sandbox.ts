import type { SandboxSpec } from './sandbox-spec.ts';

export const sandboxStatuses = [
  'STARTING',
  'RUNNING',
  'PAUSING',
  'PAUSED',
  'RESUMING',
  'ERROR',
  'MISSING',
] as const;

export type SandboxStatus = (typeof sandboxStatuses)[number];

export const pauseKinds = ['freeze', 'stop'] as const;

/** `freeze` keeps memory and processes; `stop` frees the memory and keeps the files. */
export type PauseKind = (typeof pauseKinds)[number];

/** Where a port of the spec can be reached from outside the sandbox. */
export interface ExposedUrl {
  readonly name: string;
  readonly url: string;
  /** The port inside the sandbox, as the spec names it. */
  readonly port: number;
}

/**
 * What is written down of a sandbox: the intent and the owner. The runtime holds the fact. Times are in milliseconds
 * since the epoch.
 */
export interface Sandbox {
  readonly id: string;
  /** What the runtime knows it by: its id, or, of one from a pool, the id that it had there. */
  readonly instanceId: string;
  /** {@link unowned} while it waits in a pool. */
  readonly ownerId: string;
  /** The spec as it was at the start, so that a later change of the configuration does not change what runs. */
  readonly spec: SandboxSpec;
  readonly status: SandboxStatus;
  /** Why, in words. */
  readonly statusDetail: string | null;
  /** When the status was entered; rest counts from here. */
  readonly statusSince: number;
  /** When the work on its start or resumption began: the time that it may take counts from here. Null while it waits its turn. */
  readonly startingSince: number | null;
  /** The tier of rest that is wanted (PAUSING) or holds (PAUSED, RESUMING); null otherwise. */
  readonly pauseKind: PauseKind | null;
  readonly sessionApiKey: string;
  readonly exposedUrls: readonly ExposedUrl[];
  /** One more with every write; a result of an earlier version is late and has no effect. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly lastActiveAt: number;
  /** When its deletion was asked for; a deleted sandbox is gone for every caller. */
  readonly deletedAt: number | null;
  /** When the runtime confirmed that nothing of it is left. */
  readonly removedAt: number | null;
}

/** The owner of those that wait in a pool: nobody. No caller has this id. */
export const unowned = '';

/** Does it wait in a pool? */
export function isPooled({ ownerId }: Sandbox): boolean {
  return ownerId === unowned;
}

/** What a new sandbox is made from. */
export interface NewSandbox {
  readonly id: string;
  readonly ownerId: string;
  readonly spec: SandboxSpec;
  readonly sessionApiKey: string;
  readonly now: number;
}

/** The record of a sandbox that is about to be started. */
export function newSandbox({ id, ownerId, spec, sessionApiKey, now }: NewSandbox): Sandbox {
  return {
    id,
    instanceId: id,
    ownerId,
    spec,
    status: 'STARTING',
    statusDetail: null,
    statusSince: now,
    startingSince: null,
    pauseKind: null,
    sessionApiKey,
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
 * What a runtime finds of a sandbox.
 *
 * - `absent`: nothing.
 * - `created`: made, never run.
 * - `running`: its processes run.
 * - `frozen`: its processes exist and are held.
 * - `stopped`: no process runs; the files are there.
 */
export interface ObservedSandbox {
  readonly id: string;
  readonly state: 'absent' | 'created' | 'running' | 'frozen' | 'stopped';
  /** Known while it runs or is frozen. */
  readonly exposedUrls: readonly ExposedUrl[];
  /** How it ended or why it could not begin, in words: `exited with code 3`. */
  readonly detail: string | null;
  /**
   * Of a stopped one: did it end because somebody or something outside of it ended it (its engine was restarted, a person
   * stopped it), so that it may be run again over its files? A crash is not that.
   */
  readonly endedFromOutside: boolean;
}

/** The fact of a sandbox of which there is nothing. */
export function absentSandbox(id: string, detail: string | null = null): ObservedSandbox {
  return { id, state: 'absent', exposedUrls: [], detail, endedFromOutside: false };
}

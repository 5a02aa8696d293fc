import type { Step } from '../../domain/sandbox-next-step.ts';
import type { SandboxFact } from '../../domain/sandbox.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Run } from '../keyed-worker.ts';
import type { StartQueue, Turn } from './start-queue.ts';
import type { WriteParts } from './writes.ts';

export interface SandboxDriverParts extends WriteParts {
  readonly runtime: SandboxRuntime;
  readonly probe: ReadinessProbe;
  readonly clock: Clock;
  readonly queue: StartQueue;
}

/** A step, and the fact that it was decided on; null where the runtime did not tell. */
export type DrivenStep = Step & { readonly fact: SandboxFact | null };

/** What the steps of one drive share. */
export interface StepContext {
  readonly parts: SandboxDriverParts;
  readonly run: Run;
  /** Fires when this process ends. */
  readonly closing: AbortSignal;
  /** The turn that the drive has, until what it is for is done. */
  turn: Turn | null;
}

/** Ends what a step waits for when it is no longer wanted here. */
export function unwanted({ run, closing }: StepContext, ...others: readonly AbortSignal[]): AbortSignal {
  return AbortSignal.any([run.interrupted, closing, ...others]);
}

/** Gives the drive's turn back. Idempotent. */
export function endTurn(context: StepContext): void {
  context.turn?.release();
  context.turn = null;
}

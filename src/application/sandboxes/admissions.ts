import type { LimitReached, SandboxLimits } from '../../domain/sandbox-limits.ts';
import { newSandbox, type NewSandbox, type Sandbox } from '../../domain/sandbox.ts';
import { movedEvents } from '../../domain/event.ts';
import { move } from '../../domain/sandbox-lifecycle.ts';
import type { Claim, ClaimOutcome } from '../../ports/idempotency-claim.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { InsertSandboxOutcome, ReplaceOutcome } from '../../ports/sandbox-store.ts';
import type { SandboxDriver } from './driver.ts';
import type { Pool } from './pool.ts';
import { logMove, type WriteParts } from './writes.ts';

interface AdmissionParts extends WriteParts {
  readonly driver: SandboxDriver;
  readonly pool: Pool;
  readonly limits: SandboxLimits;
  readonly clock: Clock;
  readonly random: Random;
}

type Limited = { readonly kind: 'limit'; readonly reached: LimitReached };

export type Started = { readonly kind: 'started'; readonly sandbox: Sandbox } | Limited | ClaimOutcome;

/** Writes the owner's new sandbox, from a pool where one can be had, and has it driven. */
export async function startOnce(parts: AdmissionParts, asked: Omit<NewSandbox, 'sessionApiKey'>, claim?: Claim): Promise<Started> {
  const { store, pool, limits, random } = parts;
  const warm = await pool.handOut(asked, async (sandbox, member) => {
    const outcome = await store.handOut(sandbox, member, limits, claim, movedEvents(null, sandbox, 'user'));
    return outcome.kind === 'stale' ? outcome : started(parts, sandbox, outcome);
  });
  if (warm !== null && warm.kind !== 'stale') {
    if (warm.kind === 'started') pool.nudge();
    return warm;
  }
  const cold = newSandbox({ ...asked, sessionApiKey: random.secret() });
  return started(parts, cold, await store.insert(cold, limits, claim, movedEvents(null, cold, 'user')));
}

/** Writes that the owner's paused sandbox is to run again. */
export async function resumeOnce({ store, limits, clock, logger }: AdmissionParts, sandbox: Sandbox): Promise<ReplaceOutcome | Limited> {
  const next = move(sandbox, 'resume', { now: clock.now(), detail: 'resumed by its owner' });
  if (next === null) return { kind: 'stale' };
  const outcome = await store.admit(next, limits, movedEvents(sandbox, next, 'user'));
  if (outcome.kind === 'replaced') logMove(logger, sandbox, next, 'user');
  return outcome;
}

function started({ driver, logger }: AdmissionParts, sandbox: Sandbox, outcome: InsertSandboxOutcome): Started {
  if (outcome.kind !== 'inserted') return outcome;
  logMove(logger, null, sandbox, 'user');
  driver.nudge(sandbox.id);
  return { kind: 'started', sandbox };
}

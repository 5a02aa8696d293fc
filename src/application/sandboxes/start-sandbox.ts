import { sandboxMovedEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { newSandbox, type PlannedSandbox, type Sandbox } from '../../domain/sandbox.ts';
import { parameterProblems, type SandboxParameters, applyParameters } from '../../domain/sandbox-parameters.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { ClaimOutcome, IdempotencyClaim, InsertOutcome, Limited } from '../../ports/idempotency-claim.ts';
import { unlessRepeated } from '../repeated-request.ts';
import { admit } from './admit-sandbox.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox, logStatusChange } from './sandbox-records.ts';

export interface StartSandboxRequest {
  /** Null: the deployment's default spec. */
  readonly specId: string | null;
  /** Default: the parameters of the spec. */
  readonly parameters?: SandboxParameters;
  /** Default: a new id. */
  readonly id?: string;
  readonly claim?: IdempotencyClaim;
}

/** Returns the sandbox: STARTING, or RUNNING from a pool. Throws `invalid_request`, `sandbox_limit_reached`, `idempotency_conflict`. */
export async function startSandbox(deps: SandboxUseCaseDeps, ownerId: string, request: StartSandboxRequest): Promise<Sandbox> {
  const { specId, claim, parameters = {}, id = deps.random.id('sb') } = request;
  const { metadata = {} } = parameters;
  const started = await unlessRepeated(deps.store.sandboxes, claim, async () => {
    const template = deps.specs.get(specId);
    checkParameters(deps, template, parameters);
    const spec = applyParameters(template, parameters);
    return await admit(deps, { id, ownerId }, () => startOnce(deps, { id, ownerId, spec, metadata, now: deps.clock.now() }, claim));
  });
  switch (started.kind) {
    case 'started':
      return started.sandbox;
    case 'repeated':
      return await getSandbox(deps.store, ownerId, started.id);
    case 'conflict':
      throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
  }
}

/** Idempotent by id. Throws the errors of `startSandbox`, and `sandbox_not_found` if the sandbox was started and deleted before. */
export async function startSandboxWithId(
  deps: SandboxUseCaseDeps, ownerId: string, id: string, request: Omit<StartSandboxRequest, 'id' | 'claim'>,
): Promise<Sandbox> {
  if ((await deps.store.sandboxes.find(id)) === null) await startSandbox(deps, ownerId, { ...request, id });
  return await getSandbox(deps.store, ownerId, id);
}

/** Throws `invalid_request` if the spec or the runtime does not allow the parameters. */
export function checkParameters(deps: SandboxUseCaseDeps, spec: SandboxSpec, parameters: SandboxParameters): void {
  const { minMemoryBytes } = deps.runtime;
  const problems = parameterProblems(spec, parameters, { limitsResources: limitsResources(deps), minMemoryBytes });
  if (problems.length > 0) throw new Failure('invalid_request', { problems });
}

export function limitsResources({ runtime }: Pick<SandboxUseCaseDeps, 'runtime'>): boolean {
  return !runtime.ignores.includes('resources');
}

type Started = { readonly kind: 'started'; readonly sandbox: Sandbox } | Limited | ClaimOutcome;

/** Writes the owner's new sandbox, from the pool if it has one, and enqueues it. */
async function startOnce(deps: SandboxUseCaseDeps, planned: PlannedSandbox, claim?: IdempotencyClaim): Promise<Started> {
  const { store, pool, diskWatch, random } = deps;
  const limits = { ...deps.limits, fullDisk: diskWatch.pressure };
  for await (const { member, sandbox } of pool.candidates(planned)) {
    const events = sandboxMovedEvents(null, sandbox, 'user', planned.ownerId);
    const outcome = await store.sandboxes.claimFromPool(sandbox, member, limits, claim, events);
    if (outcome.kind === 'stale') continue;
    if (outcome.kind === 'inserted') pool.claimed(planned.spec.id);
    return started(deps, sandbox, outcome);
  }
  const cold = newSandbox({ ...planned, sessionApiKey: random.secret() });
  return started(deps, cold, await store.sandboxes.insert(cold, limits, claim, sandboxMovedEvents(null, cold, 'user', cold.ownerId)));
}

function started({ reconciler, logger, startStatistics }: SandboxUseCaseDeps, sandbox: Sandbox, outcome: InsertOutcome): Started {
  if (outcome.kind !== 'inserted') return outcome;
  logStatusChange(logger, null, sandbox, 'user', sandbox.ownerId);
  startStatistics.note(null, sandbox);
  reconciler.enqueue(sandbox.id);
  return { kind: 'started', sandbox };
}

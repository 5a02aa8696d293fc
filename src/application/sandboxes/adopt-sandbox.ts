import { sandboxMovedEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { adopt, isQuarantined } from '../../domain/quarantine.ts';
import { type Caller, isUserId, userIdOf } from '../../domain/principal.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxUseCaseDeps } from './sandboxes.ts';
import { getSandbox } from './sandbox-records.ts';

/** If a field is null, the value that the runtime kept is used. */
export interface Adoption {
  readonly ownerId: string | null;
  readonly specId: string | null;
}

/**
 * Gives a sandbox in quarantine to an owner and applies a configured spec to it. It stays stopped until its owner resumes it. Throws
 * `sandbox_not_found` if it is not in the scope, `sandbox_busy` while it is being stopped, and failures of the runtime. Throws
 * `invalid_request` if it is not in quarantine, if the spec does not exist, if owner or spec are unknown, or if the owner is no user id.
 */
export async function adoptSandbox(deps: SandboxUseCaseDeps, caller: Caller, id: string, given: Adoption): Promise<Sandbox> {
  const { store, runtime, specs, clock } = deps;
  for (;;) {
    const sandbox = await getSandbox(store, caller, id);
    if (!isQuarantined(sandbox)) throw invalidArgument('id', 'not_in_quarantine');
    const kept = await runtime.keptLaunch(sandbox.instanceId);
    const ownerId = given.ownerId ?? kept?.ownerId ?? null;
    const specId = given.specId ?? kept?.specId ?? null;
    if (ownerId === null) throw invalidArgument('ownerId', 'not_known_to_runtime');
    if (specId === null) throw invalidArgument('sandboxSpecId', 'not_known_to_runtime');
    if (!isUserId(ownerId)) throw invalidArgument('ownerId', 'user_id');
    const spec = specs.get(specId);
    const sessionApiKey = kept?.fixedEnv[spec.sessionKeyEnv] ?? sandbox.sessionApiKey;
    const to = adopt(sandbox, { ownerId, sessionApiKey }, spec, clock.now());
    if (to === null) throw new Failure('sandbox_busy', { id, status: sandbox.status });
    const events = sandboxMovedEvents(null, to, 'user', userIdOf(caller));
    if ((await store.sandboxes.replace(to, events)).kind === 'replaced') return to;
  }
}

function invalidArgument(argument: string, code: 'not_in_quarantine' | 'not_known_to_runtime' | 'user_id'): Failure {
  return new Failure('invalid_request', { problems: [{ argument, reason: { code } }] });
}

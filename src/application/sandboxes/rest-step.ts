import { type AnyFailure, Failure } from '../../domain/failure.ts';
import type { PauseKind, Sandbox, SandboxFact } from '../../domain/sandbox.ts';
import { takingBack } from './refused.ts';
import type { StepContext } from './step-context.ts';

/** Puts the sandbox into the tier of rest; a pause that the runtime refuses is taken back. */
export async function restStep({ parts }: StepContext, kind: PauseKind, sandbox: Sandbox): Promise<SandboxFact> {
  const { runtime } = parts;
  const act = async (): Promise<SandboxFact> => {
    const fact = await runtime[kind](sandbox.instanceId);
    if (fact.state === 'running' && sandbox.status === 'PAUSING') throw refusal(runtime.name, fact);
    return fact;
  };
  return await takingBack(parts, 'PAUSING', () => sandbox, act);
}

function refusal(runtime: string, { detail }: SandboxFact): AnyFailure {
  return new Failure('runtime_unavailable', { runtime, reason: detail ?? 'it left the sandbox running', retryAfterSeconds: 5 });
}

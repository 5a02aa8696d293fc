import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';

/** Returns the owner's sandbox; null if there is none, or it is deleted. */
export async function findSandbox(store: SandboxStore, ownerId: string, id: string): Promise<Sandbox | null> {
  const sandbox = await store.find(id);
  return sandbox === null || sandbox.ownerId !== ownerId || sandbox.deletedAt !== null ? null : sandbox;
}

/** Returns the owner's sandbox. Throws `sandbox_not_found` if there is none, or it is deleted. */
export async function getSandbox(store: SandboxStore, ownerId: string, id: string): Promise<Sandbox> {
  const sandbox = await findSandbox(store, ownerId, id);
  if (sandbox === null) throw new Failure('sandbox_not_found', { id });
  return sandbox;
}

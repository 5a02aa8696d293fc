import type { SandboxPort } from './sandbox-spec.ts';
import type { Sandbox } from './sandbox.ts';

export function exposedPort({ spec }: Pick<Sandbox, 'spec'>, port: number): SandboxPort | null {
  return spec.ports.find((one) => one.port === port) ?? null;
}

/** Returns true if a request for a port resumes the paused sandbox. A stopped one lost its memory: only `wakeOnAccess: stop` allows it. */
export function isWokenByAccess({ spec, pauseKind }: Pick<Sandbox, 'spec' | 'pauseKind'>): boolean {
  return spec.wakeOnAccess === 'stop' || (spec.wakeOnAccess === 'freeze' && pauseKind === 'freeze');
}

import type { SandboxPort } from './sandbox-spec.ts';
import type { Sandbox } from './sandbox.ts';

export function exposedPort({ spec }: Pick<Sandbox, 'spec'>, port: number): SandboxPort | null {
  return spec.ports.find((one) => one.port === port) ?? null;
}

/** Returns true if a request for a port resumes the paused sandbox. A stopped one lost its memory: only `wakeOnAccess: stop` allows it. */
export function isWokenByAccess({ spec, pauseKind }: Pick<Sandbox, 'spec' | 'pauseKind'>): boolean {
  return spec.wakeOnAccess === 'stop' || (spec.wakeOnAccess === 'freeze' && pauseKind === 'freeze');
}

const longestTouchIntervalMs = 10_000;

/** Returns how often traffic is written as activity, in milliseconds: often enough that the idle policy does not pause the sandbox. */
export function touchIntervalMs({ spec }: Pick<Sandbox, 'spec'>): number {
  return Math.min(longestTouchIntervalMs, (spec.rest.freezeAfterMs ?? Infinity) / 3);
}

/** Compares two secrets in a time that does not depend on where they differ. An empty text is no secret. */
export function isSameSecret(one: string, other: string): boolean {
  let difference = one === '' ? 1 : one.length ^ other.length;
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at % Math.max(1, other.length));
  return difference === 0;
}

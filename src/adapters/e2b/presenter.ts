import type { Skep } from '../../application/skep.ts';
import { expiresAt, timeoutOf } from '../../domain/idle-policy.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { Sandbox, SandboxStatus } from '../../domain/sandbox.ts';
import { toTimestamp } from '../http/common-schemas.ts';
import type { RequestContext } from '../http/request-context.ts';
import { keyDigest } from '../shared/key-digest.ts';
import { sandboxToken } from './sandbox-token.ts';

/** The version of E2B's own daemon. E2B's clients infer from it which features a sandbox has. */
export const envdVersion = '0.5.7';

/** The end time of a sandbox that never ends by itself. E2B's clients require an end time. */
const noEndTime = Date.UTC(9999, 11, 31);

/** Returns the tokens and the domain for reaching the sandbox. A read-only key gets no token. */
export function presentConnection({ skep, http, principal, credential }: RequestContext, { id, spec, sessionApiKey }: Sandbox) {
  const tokens = { envdAccessToken: sandboxToken(skep, id, keyDigest(credential ?? '')), trafficAccessToken: sessionApiKey };
  const domain = domainOf(http.options.proxy);
  return { sandboxID: id, templateID: spec.id, clientID: 'skep', envdVersion, domain, ...(principal.access !== 'read' && tokens) };
}

/** Returns the domain that `getHost` uses for ports. If none is configured, the name says which setting is missing. */
function domainOf(proxy: { readonly url: string; readonly domain?: string | undefined } | undefined): string {
  if (proxy?.domain === undefined) return 'set-SKEP_PROXY_DOMAIN.invalid';
  const { port } = new URL(proxy.url);
  return port === '' ? proxy.domain : `${proxy.domain}:${port}`;
}

/** Returns the limits that the runtime applies to sandboxes of the spec. 0 means no limit. */
export function limitsOf({ sandboxes }: Pick<Skep, 'sandboxes'>, { resources }: SandboxSpec) {
  const { cpus, memoryBytes, diskBytes } = resources;
  if (!sandboxes.limitsResources()) return { cpus: 0, memoryBytes: 0, diskBytes: 0 };
  return { cpus: cpus ?? 0, memoryBytes: memoryBytes ?? 0, diskBytes: diskBytes ?? 0 };
}

export function presentLimits(skep: Pick<Skep, 'sandboxes'>, spec: SandboxSpec) {
  const { cpus, memoryBytes, diskBytes } = limitsOf(skep, spec);
  return { cpuCount: cpus, memoryMB: Math.floor(memoryBytes / 2 ** 20), diskSizeMB: Math.floor(diskBytes / 2 ** 20) };
}

export function presentListed(skep: Pick<Skep, 'sandboxes'>, sandbox: Sandbox) {
  const { id, spec, metadata, createdAt } = sandbox;
  return {
    sandboxID: id, templateID: spec.id, clientID: 'skep', startedAt: toTimestamp(createdAt), endAt: toTimestamp(endOf(sandbox)),
    state: stateOf(sandbox) ?? 'paused', ...presentLimits(skep, spec), metadata, envdVersion, volumeMounts: [],
  };
}

/** Returns when the timeout is over or the sandbox is deleted. A paused sandbox has no timeout that pauses it. */
function endOf(sandbox: Sandbox): number {
  const { status, createdAt, spec: { rest } } = sandbox;
  const deletedAt = expiresAt(sandbox) ?? noEndTime;
  if (rest.timeoutPause === undefined || status === 'PAUSED') return deletedAt;
  return Math.min(deletedAt, createdAt + (timeoutOf(sandbox) ?? Infinity));
}

const states: Readonly<Record<SandboxStatus, 'running' | 'paused' | null>> = {
  STARTING: 'running', RUNNING: 'running', PAUSING: 'running', RESUMING: 'running', PAUSED: 'paused', ERROR: null, MISSING: null,
};

/** Returns E2B's state. Null if E2B has no such state; lists then omit the sandbox. */
export function stateOf({ status }: Sandbox): 'running' | 'paused' | null {
  return states[status];
}

import type { SandboxIsolation, SandboxResources, SandboxSpec } from './sandbox-spec.ts';

/** A spec in which whatever has a default may be left out. */
export type SandboxSpecInput = Pick<SandboxSpec, 'id'> & Partial<SandboxSpec>;

/** What a sandbox may take unless its spec says otherwise. */
export const defaultResources: SandboxResources = {
  cpus: 2,
  memoryBytes: 2 * 2 ** 30,
  pids: 512,
  openFiles: 16_384,
  logBytes: 20 * 2 ** 20,
};

/** The hardening that holds unless a spec loosens it by name. */
export const defaultIsolation: SandboxIsolation = {
  capabilities: [],
  newPrivileges: false,
  seccomp: 'default',
  readOnlyRoot: false,
  network: 'isolated',
  ociRuntime: null,
  user: null,
};

/** The spec with its defaults. */
export function sandboxSpec(input: SandboxSpecInput): SandboxSpec {
  return {
    description: null,
    image: null,
    command: null,
    workingDir: '/workspace',
    initialEnv: {},
    sessionKeyEnv: 'SESSION_API_KEY',
    ports: [],
    ready: { probe: { kind: 'none' }, withinMs: 60_000 },
    resources: defaultResources,
    isolation: defaultIsolation,
    labels: {},
    rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null },
    pool: { size: 0 },
    agent: null,
    ...input,
  };
}

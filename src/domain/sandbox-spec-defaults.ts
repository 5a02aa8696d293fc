import type { SandboxSpec } from './sandbox-spec.ts';

/** A spec in which whatever has a default may be left out. */
export type SandboxSpecInput = Pick<SandboxSpec, 'id'> & Partial<SandboxSpec>;

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
    resources: { cpus: null, memoryBytes: null, pids: null },
    rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null },
    ...input,
  };
}

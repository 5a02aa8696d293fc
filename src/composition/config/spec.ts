import type { AgentSpec } from '../../domain/agent.ts';
import {
  defaultIsolation, defaultResources, type SandboxIsolation, type SandboxResources, sandboxSpec, type SandboxSpec,
} from '../../domain/sandbox-spec.ts';
import type { SpecConfig } from './spec-schema.ts';

/** Returns the domain's spec of a spec in the file. */
export function toSandboxSpec(input: SpecConfig): SandboxSpec {
  const { ready, rest } = input;
  return sandboxSpec({
    id: input.id,
    ...(input.description !== undefined && { description: input.description }),
    ...(input.image !== undefined && { image: input.image }),
    ...(input.command !== undefined && { command: input.command }),
    ...(input.working_dir !== undefined && { workingDir: input.working_dir }),
    ...(input.initial_env !== undefined && { initialEnv: input.initial_env }),
    ...(input.session_key_env !== undefined && { sessionKeyEnv: input.session_key_env }),
    ...(input.ports !== undefined && { ports: input.ports }),
    ...(input.labels !== undefined && { labels: input.labels }),
    ...(input.pool !== undefined && { pool: input.pool }),
    ready: { probe: toProbe(ready), withinMs: ready?.within ?? 60_000 },
    resources: toResources(input.resources),
    isolation: toIsolation(input.isolation),
    runtimeOptions: input.docker === undefined ? {} : { docker: input.docker },
    rest: {
      freezeAfterMs: rest?.freeze_after ?? null,
      stopAfterMs: rest?.stop_after ?? null,
      deleteAfterMs: rest?.delete_after ?? null,
      maxLifeMs: rest?.max_life ?? null,
    },
    agent: toAgent(input.agent),
  });
}

function toProbe(ready: SpecConfig['ready']): SandboxSpec['ready']['probe'] {
  if (ready?.port === undefined) return { kind: 'none' };
  if (ready.http !== undefined) return { kind: 'http', port: ready.port, path: ready.http };
  return ready.tcp === undefined ? { kind: 'none' } : { kind: 'tcp', port: ready.port };
}

/** A value that is left out has its default. Null is `unlimited` in the file. */
const chosen = <T>(value: T | undefined, otherwise: T): T => (value === undefined ? otherwise : value);

function toResources(input: SpecConfig['resources'] = {}): SandboxResources {
  return {
    cpus: chosen(input.cpus, defaultResources.cpus),
    memoryBytes: chosen(input.memory, defaultResources.memoryBytes),
    pids: chosen(input.pids, defaultResources.pids),
    openFiles: chosen(input.open_files, defaultResources.openFiles),
    logBytes: chosen(input.log, defaultResources.logBytes),
  };
}

function toIsolation(input: SpecConfig['isolation'] = {}): SandboxIsolation {
  return {
    readOnlyRoot: input.read_only_root ?? defaultIsolation.readOnlyRoot,
    network: input.network ?? defaultIsolation.network,
    user: input.user ?? defaultIsolation.user,
  };
}

function toAgent(input: SpecConfig['agent']): AgentSpec | null {
  if (input === undefined) return null;
  const { protocol, command, env = {}, secrets = [], permissions = 'ask' } = input;
  return { protocol, command, env, secrets, authMethod: input.auth_method ?? null, permissions, startWithinMs: input.start_within ?? 60_000 };
}

import { LRUCache } from 'lru-cache';
import { defaultAgentTimes } from '../../domain/agent.ts';
import {
  defaultIsolation, defaultResources, defaultRest, type SandboxIsolation, sandboxSpec, type SandboxSpec, type SandboxSpecInput,
} from '../../domain/sandbox-spec.ts';
import { json } from './record-rows.ts';

/** Each sweep reads every record, so the texts of some thousand sandboxes with a spec of their own must fit. */
const cache = new LRUCache<string, SandboxSpec>({ max: 10_000, maxSize: 4_000_000, sizeCalculation: (_spec, text) => text.length });

/** Reads the column of a spec. Caches recent specs by their text, because the texts repeat and parsing one costs more than a lookup. */
export function readSpec(text: string): SandboxSpec {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const spec = completeSpec(json(text));
  cache.set(text, spec);
  return spec;
}

/** A spec as some version wrote it. Older versions lack fields, and have settings of Docker in `isolation`. */
type StoredSpec = SandboxSpecInput & {
  readonly isolation?: SandboxIsolation & Partial<Record<'capabilities' | 'newPrivileges' | 'seccomp' | 'ociRuntime', unknown>>;
};

/** Returns the spec in its present form: fields that it lacks have their defaults, and settings of Docker are below `runtimeOptions`. */
function completeSpec(stored: StoredSpec): SandboxSpec {
  const { capabilities, newPrivileges, seccomp, ociRuntime, ...isolation } = { ...defaultIsolation, ...stored.isolation };
  const settings = { capabilities, new_privileges: newPrivileges, seccomp, oci_runtime: ociRuntime };
  const docker = Object.fromEntries(Object.entries(settings).filter(([, value]) => value));
  return sandboxSpec({
    runtimeOptions: stored.isolation === undefined ? {} : { docker },
    ...stored,
    resources: { ...defaultResources, ...stored.resources },
    isolation,
    rest: { ...defaultRest, ...stored.rest },
    agent: stored.agent ? { ...defaultAgentTimes, ...stored.agent } : null,
  });
}

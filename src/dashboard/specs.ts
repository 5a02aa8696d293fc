import type { api } from '../client/index.ts';
import { type Resource, useResource } from './live.ts';
import { currentSession } from './session.ts';

/** The sandbox specs; the first one is the default. */
export function useSpecs(): Resource<readonly api.SandboxSpec[]> {
  return useResource(async (signal) => {
    const specs: api.SandboxSpec[] = [];
    for await (const spec of currentSession().client.items('GET /api/v1/sandbox-specs/search', { signal })) specs.push(spec);
    return specs;
  }, []);
}

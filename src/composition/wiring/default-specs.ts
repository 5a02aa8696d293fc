import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sandboxSpec, type SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { CheckedOptions } from '../skep-options.ts';

const defaultImage = 'debian:bookworm-slim';

/** Returns the specs of a deployment without specs in its options. */
export function defaultSpecs({ runtime }: Pick<CheckedOptions, 'runtime'>): readonly SandboxSpec[] {
  return runtime !== undefined && 'kind' in runtime && runtime.kind === 'docker' ? [containerWorkspace] : [servedWorkspace()];
}

/** A container that runs no service. */
const containerWorkspace = sandboxSpec({
  id: 'workspace',
  description: 'A container of Debian with an empty workspace',
  image: defaultImage,
  command: ['sleep', 'infinity'],
});

/** Returns a spec with a small program that serves the workspace's files. The program runs on Skep's own Node, so it needs nothing else. */
function servedWorkspace(): SandboxSpec {
  // The program is next to this file, as source in a checkout and built in a package.
  const program = new URL(`default-spec-file-server${extname(import.meta.url)}`, import.meta.url);
  return sandboxSpec({
    id: 'workspace',
    description: "A workspace whose files are served, read-only, to whoever sends the sandbox's key in X-Session-API-Key",
    command: [process.execPath, fileURLToPath(program)],
    ports: [{ name: 'FILES', port: 8000, wantsSessionKey: true }],
    ready: { probe: { kind: 'http', port: 8000, path: '/health' }, withinMs: 30_000 },
  });
}

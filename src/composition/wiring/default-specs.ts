import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxSpecInput } from '../../domain/sandbox-spec.ts';
import type { SkepOptions } from '../options.ts';

/** The image of the ready-made spec for containers. */
export const defaultImage = 'debian:bookworm-slim';

/** The ready-made specs of a deployment that names none. */
export function defaultSpecs({ runtime }: Pick<SkepOptions, 'runtime'>): readonly SandboxSpecInput[] {
  return runtime !== undefined && 'kind' in runtime && runtime.kind === 'docker' ? [containerWorkspace] : [servedWorkspace()];
}

/** A machine of its own that does nothing until somebody does something in it. */
const containerWorkspace: SandboxSpecInput = {
  id: 'workspace',
  description: 'A container of Debian with an empty workspace',
  image: defaultImage,
  command: ['sleep', 'infinity'],
};

/**
 * A workspace, and a small program in it that serves the workspace's files to whoever has the sandbox's key. It runs on
 * the Node that Skep runs on, so it needs nothing else.
 */
function servedWorkspace(): SandboxSpecInput {
  // The program lies beside this file, as source in a checkout and built in a package.
  const program = new URL(`workspace-server${extname(import.meta.url)}`, import.meta.url);
  return {
    id: 'workspace',
    description: "A workspace whose files are served, read-only, to whoever sends the sandbox's key in X-Session-API-Key",
    command: [process.execPath, fileURLToPath(program)],
    ports: [{ name: 'FILES', port: 8000 }],
    ready: { probe: { kind: 'http', port: 8000, path: '/health' }, withinMs: 30_000 },
  };
}

import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxSpecInput } from '../domain/sandbox-spec-defaults.ts';

/**
 * The ready-made spec of a deployment that names none: a workspace, and a small program in it that serves the
 * workspace's files to whoever has the sandbox's key. It runs on the Node that Skep runs on, so it needs nothing else.
 */
export function defaultSpecs(): readonly SandboxSpecInput[] {
  // The program lies beside this file, as source in a checkout and built in a package.
  const program = new URL(`workspace-server${extname(import.meta.url)}`, import.meta.url);
  return [
    {
      id: 'workspace',
      description: "A workspace whose files are served, read-only, to whoever sends the sandbox's key in X-Session-API-Key",
      command: [process.execPath, fileURLToPath(program)],
      ports: [{ name: 'FILES', port: 8000 }],
      ready: { probe: { kind: 'http', port: 8000, path: '/health' }, withinMs: 30_000 },
    },
  ];
}

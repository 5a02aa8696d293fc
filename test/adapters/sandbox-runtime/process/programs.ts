import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../../../src/ports/sandbox-runtime.ts';
import { shellPrograms, someLaunch } from '../../../support/sandbox-programs.ts';

const server = `
require('node:fs').appendFileSync('runs', 'run\\n');
let requests = 0;
require('node:http')
  .createServer((request, response) => response.setHeader('connection', 'close').end(String(++requests)))
  .listen(Number(process.env.PORT), '127.0.0.1');
`;

/** The programs of the contract, for a host with a shell and node. */
export const programs = shellPrograms([process.execPath, '-e', server]);

/** What to start for a command, under an id that was never given. */
export function launchOf(command: readonly string[] | null, changes: Partial<SandboxSpec> = {}): SandboxLaunch {
  return someLaunch({ command, ready: { probe: { kind: 'none' }, withinMs: 10_000 }, ...changes });
}

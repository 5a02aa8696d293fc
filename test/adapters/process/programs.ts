import { randomBytes } from 'node:crypto';
import { sandboxSpec } from '../../../src/domain/sandbox-spec-defaults.ts';
import type { SandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../../src/ports/sandbox-runtime.ts';
import type { SandboxProgram } from '../../contracts/sandbox-runtime-harness.ts';

const counting = 'n=0; while :; do n=$((n+1)); echo $n > count.new && mv count.new count; sleep 0.01; done';

const server = `
require('node:fs').appendFileSync('runs', 'run\\n');
let requests = 0;
require('node:http')
  .createServer((request, response) => response.setHeader('connection', 'close').end(String(++requests)))
  .listen(Number(process.env.PORT), '127.0.0.1');
`;

/** The programs of the contract, for a host with a shell and node. */
export const programs: Readonly<Record<SandboxProgram, readonly string[]>> = {
  counts: shell(`echo run >> runs; ${counting}`),
  stubborn: shell(`trap '' TERM HUP INT; echo run >> runs; ${counting}`),
  exits: shell('echo run >> runs; exit 3'),
  tells: shell('echo run >> runs; printf "%s\\n" "$GREETING" "$SESSION_KEY" > told.new; mv told.new told; exec sleep 100000'),
  serves: [process.execPath, '-e', server],
  missing: ['no-such-program-anywhere'],
};

/** A command that a shell runs. */
export function shell(script: string): readonly string[] {
  return ['sh', '-c', script];
}

/** What to start for a command, under an id that was never given. */
export function launchOf(command: readonly string[] | null, changes: Partial<SandboxSpec> = {}): SandboxLaunch {
  return {
    id: `sb-${randomBytes(6).toString('hex')}`,
    sessionApiKey: randomBytes(16).toString('hex'),
    spec: sandboxSpec({
      id: 'spec',
      command,
      initialEnv: { GREETING: 'hello there' },
      sessionKeyEnv: 'SESSION_KEY',
      ports: [{ name: 'WEB', port: 8080 }],
      ready: { probe: { kind: 'none' }, withinMs: 10_000 },
      ...changes,
    }),
  };
}

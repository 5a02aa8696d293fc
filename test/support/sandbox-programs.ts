import { randomBytes } from 'node:crypto';
import { sandboxSpec, type SandboxSpec } from '../../src/domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../src/ports/sandbox-runtime.ts';
import type { SandboxProgram } from '../contracts/sandbox-runtime-harness.ts';

const counting = 'n=0; while :; do n=$((n+1)); echo $n > count.new && mv count.new count; sleep 0.02; done';

const everyByte = Array.from({ length: 256 }, (_, byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
const line = 'n=$((n+1)); if [ $((n%2)) = 1 ]; then echo line $n >&2; else echo line $n; fi; echo $n > count.new && mv count.new count';
const saying = `printf '${everyByte}\\n'; n=0; while :; do ${line}; sleep 0.01; done`;

/** Returns a command that runs the script in a shell. */
export function shell(script: string): readonly string[] {
  return ['sh', '-c', script];
}

/** Returns the contract's programs for a sandbox with a shell. `serves` needs another program. */
export function shellPrograms(serves: readonly string[]): Readonly<Record<SandboxProgram, readonly string[]>> {
  return {
    counts: shell(`echo run >> runs; ${counting}`),
    stubborn: shell(`trap '' TERM HUP INT; echo run >> runs; ${counting}`),
    exits: shell('echo run >> runs; echo gone >&2; exit 3'),
    'ends itself': shell('echo run >> runs; kill -TERM $$; exec sleep 100000'),
    'says goodbye': shell("trap 'echo bye > goodbye; exit 0' TERM; echo run >> runs; while :; do sleep 0.02; done"),
    says: shell(`echo run >> runs; ${saying}`),
    tells: shell('echo run >> runs; printf "%s\\n" "$GREETING" "$SESSION_KEY" > told.new; mv told.new told; exec sleep 100000'),
    serves,
    missing: ['no-such-program-anywhere'],
  };
}

/** Returns a launch with a new id, and with the variable, the key and the port that the contract requires. */
export function someLaunch(changes: Partial<SandboxSpec>): SandboxLaunch {
  return {
    id: `sb-${randomBytes(6).toString('hex')}`,
    sessionApiKey: randomBytes(16).toString('hex'),
    spec: sandboxSpec({
      id: 'spec',
      initialEnv: { GREETING: 'hello there' },
      sessionKeyEnv: 'SESSION_KEY',
      ports: [{ name: 'WEB', port: 8080 }],
      ...changes,
    }),
  };
}

import { randomBytes } from 'node:crypto';
import { sandboxSpec } from '../../../src/domain/sandbox-spec-defaults.ts';
import type { SandboxSpec } from '../../../src/domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../../src/ports/sandbox-runtime.ts';
import type { SandboxProgram } from '../../contracts/sandbox-runtime-harness.ts';
import { images } from '../../support/docker.ts';

const counting = 'n=0; while :; do n=$((n+1)); echo $n > count.new && mv count.new count; sleep 0.01; done';

/** Counts requests in a file, which begins anew with each life. */
const server = String.raw`
echo run >> runs
echo 0 > requests
mkdir -p www/cgi-bin
cat > www/cgi-bin/index.cgi <<'CGI'
#!/bin/sh
n=$(($(cat /workspace/requests) + 1))
echo $n > /workspace/requests
printf 'Content-Type: text/plain\r\n\r\n%s' $n
CGI
chmod +x www/cgi-bin/index.cgi
exec httpd -f -p "$PORT" -h www
`;

/** The programs of the contract, for an image with busybox. */
export const programs: Readonly<Record<SandboxProgram, readonly string[]>> = {
  counts: shell(`echo run >> runs; ${counting}`),
  stubborn: shell(`trap '' TERM HUP INT; echo run >> runs; ${counting}`),
  exits: shell('echo run >> runs; exit 3'),
  tells: shell('echo run >> runs; printf "%s\\n" "$GREETING" "$SESSION_KEY" > told.new; mv told.new told; exec sleep 100000'),
  serves: shell(server),
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
      image: images.tiny,
      command,
      initialEnv: { GREETING: 'hello there' },
      sessionKeyEnv: 'SESSION_KEY',
      ports: [{ name: 'WEB', port: 8080 }],
      resources: { cpus: 2, memoryBytes: 128 * 2 ** 20, pids: 64, openFiles: 1_024, logBytes: 2 ** 20 },
      ...changes,
    }),
  };
}

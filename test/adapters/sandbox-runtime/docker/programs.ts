import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import type { SandboxLaunch } from '../../../../src/ports/sandbox-runtime.ts';
import { images } from '../../../support/docker.ts';
import { shell, shellPrograms, someLaunch } from '../../../support/sandbox-programs.ts';

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
export const programs = shellPrograms(shell(server));

export const sleeps = shell('touch begun; exec sleep 100000');
export const endsWell = shell('trap "exit 0" TERM; touch begun; while :; do sleep 0.05; done');

/** What to start for a command, under an id that was never given. */
export function launchOf(command: readonly string[] | null, changes: Partial<SandboxSpec> = {}): SandboxLaunch {
  const resources = { cpus: 2, memoryBytes: 128 * 2 ** 20, pids: 64, openFiles: 1_024, logBytes: 2 ** 20, diskBytes: null };
  return someLaunch({ image: images.tiny, command, resources, ...changes });
}

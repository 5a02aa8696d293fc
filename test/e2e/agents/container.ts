import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import Docker from 'dockerode';

const docker = new Docker();

/** Returns the address of this machine on Docker's default bridge, which containers can reach. */
export async function bridgeAddress(): Promise<string> {
  const { IPAM } = await docker.getNetwork('bridge').inspect();
  // A bridge that was never used reports no gateway.
  return IPAM?.Config?.[0]?.Gateway ?? '172.17.0.1';
}

/** Returns the output of a command in the container. Throws if the command fails. */
export async function outputOf(container: Docker.Container, command: readonly string[]): Promise<string> {
  const exec = await container.exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true, stdin: false });
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  docker.modem.demuxStream(stream, stdout, stderr);
  stream.once('close', () => {
    stdout.end();
    stderr.end();
  });
  const [said, complained] = await Promise.all([text(stdout), text(stderr)]);
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`${command.join(' ')} ended with ${ExitCode}: ${complained}`);
  return said;
}

export interface ProcessInside {
  readonly command: string;
  /** The environment variables, one per line. */
  readonly environment: string;
}

const listing = String.raw`for p in /proc/[0-9]*; do [ "$p" = "/proc/$$" ] && continue; tr '\0' ' ' <$p/cmdline 2>/dev/null; printf '\001'; tr '\0' '\n' <$p/environ 2>/dev/null; printf '\002'; done`;

/** Returns the processes of the container's user, except the process that lists them. */
export async function processesIn(container: Docker.Container): Promise<ProcessInside[]> {
  const entries = (await outputOf(container, ['sh', '-c', listing])).split('\u0002').slice(0, -1);
  return entries.map((entry) => {
    const [command = '', environment = ''] = entry.split('\u0001');
    return { command: command.trim(), environment };
  });
}

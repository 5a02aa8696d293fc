import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { Failure } from '../../../domain/failure.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { spawned } from '../../shared/spawned.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { readStart } from '../shell-functions.ts';
import { environmentVariable, passedEnvironment, resolveCommand, sandboxEnvironment } from './command.ts';
import { type Layout, makeHome } from './data-folder.ts';
import { launchFile, type LaunchNumber, type LaunchPlan, type LaunchRecord, readLastLaunch, refuseLaunch } from './launch-records.ts';
import type { PortReservations } from './port-reservations.ts';
import type { ProcessTable } from './process-table.ts';
import type { SandboxLogs } from './sandbox-logs.ts';
import { unavailable } from './runtime-failures.ts';

interface LaunchOptions {
  readonly layout: Layout;
  readonly table: ProcessTable;
  readonly ports: PortReservations;
  readonly logs: SandboxLogs;
}

/** Errors of the system or of Node that the command causes. */
const spawnErrors: Readonly<Record<string, Reason>> = {
  E2BIG: explained('its command and its environment are too long'),
  ERR_INVALID_ARG_VALUE: explained('its command or its environment holds a NUL character'),
};

/**
 * Runs a sandbox's command for the launch after the last one. It runs at most once, also if several processes try. Returns after that is
 * decided, with the leader if it is a child of this process.
 */
export async function runLaunch(
  options: LaunchOptions, launch: SandboxLaunch, last: LaunchRecord, progress: Progress,
): Promise<ChildProcess | null> {
  const { layout, ports } = options;
  const { workspace, home } = layout.sandbox(launch.id);
  const { workingDir, command, initialEnv } = launch.spec;
  const about = { spec: launch.spec.id, owner: launch.ownerId, workingDir };
  const next = { folder: last.folder, number: last.number + 1 };
  const previous = last.claim?.plan.ports ?? [];
  const refuse = async (refused: Reason): Promise<null> => {
    await refuseLaunch(next, { ...about, mark: randomUUID(), ports: previous, refused });
    return null;
  };

  await mkdir(workspace, { recursive: true });
  await makeHome(home);
  const path = initialEnv['PATH'] ?? passedEnvironment().PATH;
  const resolved = await resolveCommand(command, workspace, path);
  if ('refused' in resolved) return refuse(resolved.refused);

  progress({ code: 'starting_command' });
  const reserved: LaunchPlan['ports'][number][] = [];
  try {
    for (const { name, port } of launch.spec.ports) {
      const preferred = previous.find((one) => one.port === port)?.hostPort ?? null;
      reserved.push({ name, port, hostPort: await ports.reserve(launch.id, preferred) });
    }
    const plan = { ...about, mark: randomUUID(), ports: reserved, path, secrets: Object.keys(launch.secrets ?? {}) };
    return await tryLaunch(options, launch, next, plan, resolved.command);
  } catch (error) {
    const problem = spawnErrors[errorCode(error) ?? ''];
    if (problem === undefined) throw error;
    return await refuse(problem);
  } finally {
    // A port may have been in use, or another process may have won the launch.
    const used = (await readLastLaunch(last.folder))?.claim?.plan.ports ?? [];
    const unused = [...previous, ...reserved].filter(({ hostPort }) => !used.some((one) => one.hostPort === hostPort));
    if (unused.length > 0) await ports.release((owner, port) => owner === launch.id && unused.some(({ hostPort }) => hostPort === port));
  }
}

async function tryLaunch(
  { layout, table, logs }: LaunchOptions, launch: SandboxLaunch, next: LaunchNumber, plan: LaunchPlan, command: readonly string[],
): Promise<ChildProcess | null> {
  const { workspace, home, log } = layout.sandbox(launch.id);
  await logs.cut(launch.id);
  // Opened for appending, so it still writes at the end after the log is cut.
  const output = await open(log, 'a', 0o600);
  const environment = sandboxEnvironment(launch, { workspace, home }, plan);
  // The process list shows all arguments, so they must not contain a secret.
  const files = [launchFile(next, 'claim'), launchFile(next, 'exit')];
  const args = ['-c', script.trim(), 'skep-sandbox', ...files, table.kind, JSON.stringify(plan), plan.path ?? '', ...command];
  try {
    const child = await spawnLauncher(args, {
      cwd: workspace,
      // The launcher uses the server's path for its own tools, and sets the command's path for the command.
      env: { ...environment, ...table.extraVariables(environment), PATH: passedEnvironment().PATH },
      detached: true,
      stdio: ['ignore', output.fd, output.fd, 'pipe'],
    });
    const last = await readLastLaunch(next.folder);
    if (last !== null && last.number < next.number) throw unavailable('the launcher of its command failed');
    return last?.claim?.plan.mark === plan.mark ? child : null;
  } finally {
    await output.close();
  }
}

/**
 * The launcher: a POSIX shell script that leads a sandbox's process group. Skep may be killed at any moment, so the launcher itself does
 * all steps that must not be lost:
 *
 * 1. It writes its identity (pid, start time, boot) to a file, and claims the launch with a hard link to that file. A link is atomic, so
 *    only one of several launchers runs the command, and its identity is on the disk before the command begins.
 * 2. It closes descriptor 3, which reports to Skep that the launch is decided. It writes nothing there: that would kill the launcher if
 *    Skep has ended.
 * 3. It runs the command as its child and writes down the exit status. A signal to the group does not end the launcher.
 * 4. It kills the rest of the group, as a container does when its first process ends.
 *
 * It never waits for a child in vfork, because a freeze would then find it neither running nor stopped. A subshell avoids that.
 * The variables have a prefix, so that they do not overwrite variables in the command's environment.
 */
const script = `${readStart}
_skep_claim=$1 _skep_exit=$2 _skep_table=$3 _skep_plan=$4 _skep_path=$5 _skep_own_path=$PATH
shift 5
_skep_asked=
trap '_skep_asked=1' HUP INT QUIT TERM USR1 USR2
if [ "$_skep_table" = proc ]; then
  _skep_read_start "/proc/$$/stat"
  read -r _skep_boot < /proc/sys/kernel/random/boot_id
else
  _skep_start=$(TZ=UTC LC_ALL=C ps -o lstart= -p $$)
  _skep_boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null || echo unknown)
fi
printf '%s\\n' "$$" "$_skep_start" "$_skep_boot" "$_skep_plan" > "$_skep_claim.$$" && ln "$_skep_claim.$$" "$_skep_claim" 2>/dev/null
_skep_lost=$?
exec 3>&-
( rm -f "$_skep_claim.$$" )
[ $_skep_lost -eq 0 ] || exit 1
if [ -z "$_skep_asked" ]; then
  PATH=$_skep_path
  ( unset ${environmentVariable}; exec "$@" )
  _skep_status=$?
else
  _skep_status=143
fi
PATH=$_skep_own_path
printf '%s\\n' "$_skep_status" > "$_skep_exit.$$" && ( mv "$_skep_exit.$$" "$_skep_exit" )
kill -s KILL -- "-$$"
`;

/** How long a launcher may take to claim its launch or give up. */
const limitMs = 10_000;

/**
 * Starts a launcher in its own session and group, which outlive this process. Returns when the launcher has decided whether it runs the
 * command. Rejects with a system error if it can't be started.
 */
async function spawnLauncher(args: readonly string[], options: SpawnOptions): Promise<ChildProcess> {
  const child = await spawned(spawn('/bin/sh', args, options));
  const decided = child.stdio[3];
  if (!(decided instanceof Socket)) throw new TypeError('the launcher has no descriptor 3');
  try {
    decided.resume();
    await once(decided, 'close', { signal: AbortSignal.timeout(limitMs) });
  } catch (error) {
    throw new Failure('runtime_timeout', { runtime: 'process', limitMs }, { cause: error });
  } finally {
    decided.destroy();
    child.unref();
  }
  return child;
}

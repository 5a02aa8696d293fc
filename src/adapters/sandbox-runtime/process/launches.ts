import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, open } from 'node:fs/promises';
import { Socket } from 'node:net';
import { Failure } from '../../../domain/failure.ts';
import { explained, type Reason } from '../../../domain/reason.ts';
import type { Progress, SandboxLaunch } from '../../../ports/sandbox-runtime.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { environmentVariable, passedEnvironment, resolveCommand, sandboxEnvironment } from './command.ts';
import type { Layout } from './data-folder.ts';
import { launchFile, type LaunchNumber, type LaunchPlan, type LaunchRecord, readLastLaunch, refuseLaunch } from './launch-records.ts';
import type { PortReservations } from './port-reservations.ts';
import type { ProcessTable } from './process-table.ts';
import type { SandboxLogs } from './sandbox-logs.ts';
import { unavailable } from './runtime-failures.ts';

export interface LaunchOptions {
  readonly layout: Layout;
  readonly table: ProcessTable;
  readonly ports: PortReservations;
  readonly logs: SandboxLogs;
}

/** Errors of the system or of Node that are the command's fault. */
const unspawnable: Readonly<Record<string, Reason>> = {
  E2BIG: explained('its command and its environment are too long'),
  ERR_INVALID_ARG_VALUE: explained('its command or its environment holds a NUL character'),
};

/**
 * Runs a sandbox's command once more after its last launch, and at most once, whoever else tries. Returns when that is decided, with
 * the leader if it is a child of this process.
 */
export async function runLaunch(
  options: LaunchOptions, launch: SandboxLaunch, last: LaunchRecord, progress: Progress,
): Promise<ChildProcess | null> {
  const { layout, ports } = options;
  const { workspace } = layout.sandbox(launch.id);
  const { workingDir, command, initialEnv } = launch.spec;
  const about = { spec: launch.spec.id, owner: launch.ownerId, workingDir };
  const next = { folder: last.folder, number: last.number + 1 };
  const previous = last.claim?.plan.ports ?? [];
  const refuse = async (refused: Reason): Promise<null> => {
    await refuseLaunch(next, { ...about, mark: randomUUID(), ports: previous, refused });
    return null;
  };

  await mkdir(workspace, { recursive: true });
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
    const plan = { ...about, mark: randomUUID(), ports: reserved, path };
    return await tryLaunch(options, launch, next, plan, resolved.command);
  } catch (error) {
    const problem = unspawnable[errorCode(error) ?? ''];
    if (problem === undefined) throw error;
    return await refuse(problem);
  } finally {
    await releaseUnused(options, launch.id, [...previous, ...reserved]);
  }
}

async function tryLaunch(
  { layout, table, logs }: LaunchOptions, launch: SandboxLaunch, next: LaunchNumber, plan: LaunchPlan, command: readonly string[],
): Promise<ChildProcess | null> {
  const { workspace, log } = layout.sandbox(launch.id);
  await logs.cut(launch.id);
  // Written at its end, which stays the end when the log is cut.
  const output = await open(log, 'a', 0o600);
  const environment = sandboxEnvironment(launch, workspace, plan);
  // All arguments can be seen in the process list, so no secret may be in them.
  const files = [launchFile(next, 'claim'), launchFile(next, 'exit')];
  const args = ['-c', script.trim(), 'skep-sandbox', ...files, table.kind, JSON.stringify(plan), plan.path ?? '', ...command];
  try {
    const child = await spawnLauncher(args, {
      cwd: workspace,
      // The launcher finds its own tools on the server's path, and sets the command's path for it.
      env: { ...environment, ...table.carried(environment), PATH: passedEnvironment().PATH },
      detached: true,
      stdio: ['ignore', output.fd, output.fd, 'pipe'],
    });
    const last = await readLastLaunch(next.folder);
    if (last !== null && last.number < next.number) throw unavailable('a launcher could not do its work');
    return last?.claim?.plan.mark === plan.mark ? child : null;
  } finally {
    await output.close();
  }
}

/** A port that was taken meanwhile is given up for another, and somebody else's launch may have won with its own ports. */
async function releaseUnused({ layout, ports }: LaunchOptions, id: string, reserved: LaunchPlan['ports']): Promise<void> {
  const last = await readLastLaunch(layout.sandbox(id).launches);
  const used = last?.claim?.plan.ports ?? [];
  const unused = reserved.map(({ hostPort }) => hostPort).filter((hostPort) => !used.some((one) => one.hostPort === hostPort));
  await ports.release(id, unused);
}

/**
 * The program that leads a sandbox's process group. It is a shell's, so that it needs nothing but POSIX, and it does by
 * itself all that must not be lost when Skep is killed at any moment:
 *
 * 1. It finds out who it is (pid, start time, boot), and takes the launch by linking a file that says so. Linking is
 *    atomic and happens once: of several launchers for one launch, one runs the command, and who it is is on disk before
 *    the command begins.
 * 2. It closes descriptor 3, whose end reports to Skep that the launch is decided. Nothing is written to it: that would kill a
 *    launcher whose Skep is gone.
 * 3. It runs the command as its child and notes how that ended. A signal for the group does not end the launcher.
 * 4. It ends what the command left in the group, as the end of a container's first process does.
 *
 * It never waits for a child in vfork, which a subshell avoids: a freeze would find it neither running nor held.
 * Its variables have a prefix, because a variable of the same name in the command's environment would be changed.
 */
const script = `
_skep_claim=$1 _skep_exit=$2 _skep_table=$3 _skep_plan=$4 _skep_path=$5 _skep_own_path=$PATH
shift 5
_skep_asked=
trap '_skep_asked=1' HUP INT QUIT TERM USR1 USR2
if [ "$_skep_table" = proc ]; then
  _skep_nth() { shift 19; _skep_start=$1; }
  read -r _skep_stat < "/proc/$$/stat"
  _skep_nth \${_skep_stat##*) }
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

/** How long a launcher may take to decide its launch. */
const limitMs = 10_000;

/**
 * Starts a launcher in a session and group of its own, which outlive this process. Returns when it has decided whether
 * it runs the command. Rejects with a system error when it can't be started.
 */
async function spawnLauncher(args: readonly string[], options: SpawnOptions): Promise<ChildProcess> {
  const child = spawn('/bin/sh', args, options);
  await once(child, 'spawn');
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

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { type api, type Attachment, type Execution, isFailure, type SkepClient } from '../../client/index.ts';
import { addVariable, variableHelp } from './arguments.ts';
import { commandName } from '../../client/command-name.ts';
import { loginShell } from '../../client/executions.ts';
import { isTemporary } from '../../client/failures.ts';
import {
  clientOf, CommandError, type Common, duplicateSignalMs, exitOnOutputError, followOptions, notice, olderNotice, print, subcommand, urlHelp,
} from './console.ts';
import { table } from './tables.ts';
import { safeLine } from './safe-text.ts';

/** Adds `exec`, `shell`, `executions` and `kill`. Options after the command belong to the command, as in `docker exec`. */
export function addExecutions(program: Command, finish: (exitCode: number) => void): void {
  program.enablePositionalOptions();
  withExecOptions(program.command('exec').description('run a command in a sandbox, and exit with its exit code'))
    .argument('<sandbox>', 'the id of a running sandbox')
    .argument('<command...>', 'the command and its arguments')
    .passThroughOptions()
    .option('-i, --interactive', 'send the standard input to the command')
    .option('-t, --tty', 'run it in a terminal')
    .option('-d, --detach', 'run it in the background, and print the id of its execution')
    .action(async (sandboxId: string, command: string[], given: ExecOptions) => finish(await execute(sandboxId, command, given)));
  withExecOptions(program.command('shell').description('open a shell in a sandbox'))
    .argument('<sandbox>', 'the id of a running sandbox')
    .action(async (sandboxId: string, given: ExecOptions) =>
      finish(await execute(sandboxId, loginShell, { ...given, interactive: true, tty: true })));
  subcommand(program, 'executions <sandbox>', 'list the newest executions of a sandbox, also those that have ended').action(listExecutions);
  subcommand(program, 'kill <sandbox> <execution>', 'end an execution with all its processes; its output is kept')
    .option('--signal <name>', 'another signal for its process group, for example SIGTERM', 'SIGKILL')
    .action(sendSignal);
}

async function sendSignal(id: string, executionId: string, { signal, ...options }: Common & api.ExecutionSignal): Promise<void> {
  const sandbox = await clientOf(options).sandboxes.get(id);
  const execution = await sandbox.executions.get(executionId);
  await execution.signal(signal);
  print(options, { id: executionId, signal }, '');
  notice(`${signal} is sent to ${executionId}.`);
}

async function listExecutions(id: string, options: Common): Promise<void> {
  const page = await clientOf(options).request('GET /api/v1/sandboxes/{id}/executions', { path: { id } });
  const rows = page.items.map(({ id, status, exit_code: exitCode, started_at: startedAt, command }) =>
    [id, status, exitCode === null ? '-' : String(exitCode), startedAt, command.join(' ')]);
  print(options, page, table(['ID', 'STATUS', 'EXIT', 'STARTED', 'COMMAND'], rows));
  olderNotice(page);
}

function withExecOptions(command: Command): Command {
  return command
    .option('-e, --env <variable>', variableHelp, addVariable)
    .option('-w, --workdir <path>', 'an absolute path in the sandbox')
    .option('--url <url>', urlHelp);
}

interface ExecOptions {
  readonly url?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly workdir?: string;
  readonly interactive?: boolean;
  readonly tty?: boolean;
  readonly detach?: boolean;
}

async function execute(sandboxId: string, command: readonly string[], options: ExecOptions): Promise<number> {
  const { env, workdir, interactive = false, tty = false, detach = false } = options;
  if (detach && (interactive || tty)) throw new CommandError('Use -d without -i and -t: a command in the background gets no input.');
  // All arguments after the sandbox are passed on unchanged, except a first `--`.
  const own = command[0] === '--' ? command.slice(1) : command;
  const client = clientOf(options);
  if (detach) {
    const sandbox = await client.sandboxes.get(sandboxId);
    const { id } = await sandbox.executions.start(own, { env, working_dir: workdir });
    process.stdout.write(`${id}\n`);
    return 0;
  }
  return await executeAttached(client, sandboxId, own, options);
}

/** Signals of this process that are sent to a command without a terminal. In a terminal, the command gets them as keys. */
const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The time limit for deleting the execution if the command is left before its end, in milliseconds. */
const lastRequestMs = 2000;

/** The exit code if the command's own exit code is unknown. */
const unknownExitCode = 125;

/**
 * Runs a command in a sandbox, as `docker exec` does. Forwards input, output, signals and terminal sizes. Returns the command's exit code.
 */
async function executeAttached(client: SkepClient, sandboxId: string, command: readonly string[], options: ExecOptions): Promise<number> {
  const { interactive = false, tty = false, env, workdir } = options;
  const { stdin, stdout, stderr } = process;
  const isRaw = interactive && tty;
  if (isRaw && !stdin.isTTY) {
    throw new CommandError(`The standard input is not a terminal. Run this in a terminal, or use \`${commandName} exec\` without -t.`);
  }
  const { executions } = await client.sandboxes.get(sandboxId);
  // Before the command starts, so this machine's terminal handles no key itself.
  using _ = openInput(stdin, isRaw);
  const report = (message: string): void => void stderr.write(`skep: ${safeLine(message)}${isRaw ? '\r' : ''}\n`);
  // Fires if the command is left before its end. The first reason stays.
  const left = new AbortController();
  const leave = (reason: unknown): void => left.abort(reason);
  // Replaces the listener of the program, to delete the execution before the exit.
  for (const stream of [stdout, stderr]) stream.off('error', exitOnOutputError).on('error', leave);
  const { onLost, signal } = followOptions(left.signal, report);
  const terminal = tty ? sizeOf(stdout) : null;
  const starting = executions.start(command, { env, stdin: interactive, tty: terminal, working_dir: workdir, signal });
  const attaching = starting.then((execution) => execution.attach({ takeover: true, hold: true, onRefused: report, onLost, signal }));
  // Before the execution exists, so a signal during the start reaches it.
  using forwarding = forwardInput(attaching, { interactive, tty }, leave);
  const [execution, attachment] = await Promise.all([starting, attaching]);
  return await finishAttached({ execution, attachment, left, noteOutput: forwarding.noteOutput, report });
}

interface Attached {
  readonly execution: Execution;
  readonly attachment: Attachment;
  readonly left: AbortController;
  readonly noteOutput: () => void;
  readonly report: (message: string) => void;
}

/**
 * Prints the output to its end, and returns the command's exit code. Deletes the execution afterwards, also if its output can't be read or
 * printed any more, but not if the server is away for too long.
 */
async function finishAttached({ execution, attachment, left, noteOutput, report }: Attached): Promise<number> {
  try {
    await printOutput(attachment, noteOutput);
  } catch (error) {
    // The server is away, perhaps behind a proxy that answers. A lost connection to a server that answers does not come back.
    if (isTemporary(error) && !isFailure(error, 'connection_lost')) {
      const logs = `${commandName} logs ${execution.state.sandbox_id} ${execution.id}`;
      throw new CommandError(`${error.message} The command may still run. Later: ${logs}`);
    }
    left.abort(error);
  }
  await execution.delete(left.signal.aborted ? { silenceMs: lastRequestMs } : {}).catch(ignore);
  if (left.signal.aborted) exitOnOutputError(left.signal.reason);
  const { exit_code: exitCode = null, status_detail: detail = null } = attachment.end ?? {};
  if (exitCode === null) report(detail ?? 'The exit code of the command is not known.');
  return exitCode ?? unknownExitCode;
}

/** Sets the terminal's raw mode if wanted. The disposal ends it, and closes the input. */
function openInput(stdin: NodeJS.ReadStream, isRaw: boolean): Disposable {
  if (isRaw) {
    stdin.setRawMode(true);
    // Node's raw mode still turns a line feed of the output into CR LF. The end of the raw mode undoes both.
    spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  }
  return {
    [Symbol.dispose]() {
      if (isRaw) stdin.setRawMode(false);
      stdin.destroy();
    },
  };
}

/** For errors that the attachment reports itself, and for harmless ones. */
const ignore = (): void => {};

async function printOutput(attachment: Attachment, noteOutput: () => void): Promise<void> {
  for await (const { stream, bytes } of attachment) {
    noteOutput();
    const target = stream === 'stdout' ? process.stdout : process.stderr;
    if (!target.write(bytes)) await once(target, 'drain');
  }
}

/**
 * Forwards input, signals and sizes when the client is attached. Calls `leave` if the input can't be read, and at a signal or a Control-C
 * if an earlier one still waits and no output comes.
 */
function forwardInput(
  attaching: Promise<Attachment>, { interactive, tty }: Required<Pick<ExecOptions, 'interactive' | 'tty'>>,
  leave: (reason: CommandError) => void,
) {
  const { stdin, stdout } = process;
  const resize = (): void => void attaching.then((attachment) => attachment.resize(sizeOf(stdout))).catch(ignore);
  let waitsSince: number | null = null;
  const interrupt = (sent: () => Promise<void>): void => {
    if (waitsSince !== null && performance.now() - waitsSince > duplicateSignalMs) {
      leave(new CommandError('The server does not answer. The command may still run in the sandbox.'));
      return;
    }
    waitsSince ??= performance.now();
    void sent().catch(ignore).finally(() => (waitsSince = null));
  };
  const signal = (name: (typeof forwardedSignals)[number]): void => interrupt(async () => await (await attaching).signal(name));
  if (tty) stdout.on('resize', resize);
  if (interactive) {
    // An execution can only be deleted when it has started.
    stdin.once('error', ({ message }) =>
      void attaching.then(() => leave(new CommandError(`Can't read the standard input: ${message}`))).catch(ignore));
  }
  if (interactive && tty) sendKeys(stdin, attaching, interrupt);
  else {
    // They stay, so a repeated signal does not change the exit code.
    for (const name of forwardedSignals) process.on(name, signal);
    if (interactive) void attaching.then((attachment) => pump(stdin, attachment)).catch(ignore);
  }
  return {
    /** To be called at each output, which shows that the server answers. */
    noteOutput: (): void => {
      if (waitsSince !== null) waitsSince = performance.now();
    },
    [Symbol.dispose]: () => void stdout.off('resize', resize),
  };
}

/** How many bytes of keys may wait, for example while the server is down. Further keys are dropped, but a Control-C still interrupts. */
const maxWaitingBytes = 1 << 20;

/** Sends keys in order, as they are typed. Calls `interrupt` for those with a Control-C. */
export function sendKeys(
  stdin: Readable, attaching: Promise<Pick<Attachment, 'write' | 'closeInput'>>, interrupt: (sent: () => Promise<void>) => void,
): void {
  let sent: Promise<void> = Promise.resolve();
  let waitingBytes = 0;
  const send = async (work: () => Promise<void>): Promise<void> => await (sent = sent.then(work).catch(ignore));
  stdin.on('data', (keys: Buffer) => {
    const sendThem = async (): Promise<void> => {
      if (waitingBytes > maxWaitingBytes) return await sent;
      waitingBytes += keys.length;
      await send(async () => await (await attaching).write(keys));
      waitingBytes -= keys.length;
    };
    if (keys.includes('\u0003')) interrupt(sendThem);
    else void sendThem();
  });
  stdin.on('end', () => void send(async () => await (await attaching).closeInput()));
}

/** A terminal that does not know its size reports 0. */
function sizeOf({ columns, rows }: NodeJS.WriteStream): api.TerminalSize {
  return { cols: columns || 80, rows: rows || 24 };
}

async function pump(stdin: NodeJS.ReadStream, attachment: Attachment): Promise<void> {
  for await (const part of stdin) await attachment.write(part);
  await attachment.closeInput();
}

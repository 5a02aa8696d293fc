import { once } from 'node:events';
import { commandName } from '../../client/command-name.ts';
import type { api, Attachment, SkepClient } from '../../client/index.ts';
import { CommandError, duplicateSignalMs, exitOnClosedPipe } from './console.ts';
import { safeLine } from './safe-text.ts';

export interface ExecuteOptions {
  /** Whether standard input is sent to the command. */
  readonly interactive: boolean;
  /** Whether the command runs in a terminal. */
  readonly tty: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string | undefined;
}

/** The standard streams of a process. */
export interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WritableStream;
}

/** Signals of this process that are sent to a command without a terminal. In a terminal, the command gets them as keys. */
const forwardedSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The time limit for deleting the execution if the command is left before its end, in milliseconds. */
const lastRequestMs = 2000;

/** The exit code if the command's own exit code is unknown. */
const unknownExitCode = 125;

/**
 * Runs a command in a sandbox, as `docker exec` does. Forwards input, output, signals and terminal sizes. Returns the command's exit code.
 * Deletes the execution afterwards, also if nobody reads the output any more.
 */
export async function executeInSandbox(
  client: SkepClient, sandboxId: string, command: readonly string[], options: ExecuteOptions, streams: Streams,
): Promise<number> {
  const { interactive, tty, env, workingDir } = options;
  const { stdin, stdout, stderr } = streams;
  if (tty && interactive && !stdin.isTTY) {
    throw new CommandError(`The standard input is not a terminal. Run this in a terminal, or use \`${commandName} exec\` without -t.`);
  }
  const { executions } = await client.sandboxes.get(sandboxId);
  // Set before the command starts, so this machine's terminal handles no key itself.
  const isRaw = interactive && tty;
  if (isRaw) stdin.setRawMode(true);
  let stop = ignore;
  const output = new AbortController();
  // Replaces the listener of the program, to delete the execution before the exit.
  for (const stream of [stdout, stderr]) stream.off('error', exitOnClosedPipe).on('error', (error) => output.abort(error));
  try {
    const terminal = tty ? sizeOf(stdout) : null;
    const execution = await executions.start(command, { env, stdin: interactive, tty: terminal, working_dir: workingDir });
    const refused = (message: string): void => void stderr.write(`skep: ${safeLine(message)}${isRaw ? '\r' : ''}\n`);
    const attachment = execution.attach({ takeover: true, onRefused: refused, signal: output.signal });
    const leave = (): void => output.abort(new CommandError('The server does not answer. The command may still run in the sandbox.'));
    stop = forwardInput(attachment, options, streams, leave);
    await printOutput(attachment, streams).catch((error: unknown) => {
      if (!output.signal.aborted) throw error;
    });
    await execution.delete(output.signal.aborted ? { silenceMs: lastRequestMs } : {}).catch(ignore);
    if (output.signal.aborted) exitOnClosedPipe(output.signal.reason);
    const { exit_code: exitCode = null, status_detail: detail = null } = attachment.end ?? {};
    if (exitCode === null) refused(detail ?? 'The exit code of the command is not known.');
    return exitCode ?? unknownExitCode;
  } finally {
    if (isRaw) stdin.setRawMode(false);
    stop();
  }
}

/** For errors that the attachment reports itself, and for harmless ones. */
const ignore = (): void => {};

async function printOutput(attachment: Attachment, { stdout, stderr }: Streams): Promise<void> {
  for await (const { stream, bytes } of attachment) {
    const target = stream === 'stdout' ? stdout : stderr;
    if (!target.write(bytes)) await once(target, 'drain');
  }
}

/** Forwards input, signals and sizes. `leave` is called at a signal if an earlier one still waits. Returns a function that stops this. */
function forwardInput(
  attachment: Attachment, { interactive, tty }: ExecuteOptions, { stdin, stdout }: Streams, leave: () => void,
): () => void {
  const resize = (): void => void attachment.resize(sizeOf(stdout)).catch(ignore);
  let waitsSince: number | null = null;
  const signal = (name: (typeof forwardedSignals)[number]): void => {
    if (waitsSince !== null && performance.now() - waitsSince > duplicateSignalMs) return leave();
    waitsSince ??= performance.now();
    void attachment.signal(name).catch(ignore).finally(() => (waitsSince = null));
  };
  if (tty) stdout.on('resize', resize);
  if (!(interactive && tty)) for (const name of forwardedSignals) process.on(name, signal);
  if (interactive) void pump(stdin, attachment).catch(ignore);
  return () => {
    stdout.off('resize', resize);
    for (const name of forwardedSignals) process.off(name, signal);
    stdin.destroy();
  };
}

/** A terminal that does not know its size reports 0. */
function sizeOf({ columns, rows }: NodeJS.WriteStream): api.TerminalSize {
  return { cols: columns || 80, rows: rows || 24 };
}

async function pump(stdin: NodeJS.ReadStream, attachment: Attachment): Promise<void> {
  for await (const part of stdin) await attachment.write(part);
  await attachment.closeInput();
}

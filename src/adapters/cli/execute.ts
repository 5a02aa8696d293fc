import { once } from 'node:events';
import { z } from 'zod';
import { ClientError, type SkepClient } from '../../client/client.ts';
import { Attachment, execution, type Execution, type TerminalSize } from '../../client/executions.ts';

export interface ExecuteOptions {
  /** Whether input is handed on. */
  readonly interactive: boolean;
  /** Whether it runs in a terminal. */
  readonly tty: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir?: string;
}

/** The streams of this process, or what stands for them. */
export interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WritableStream;
}

/** Signals of this process that are handed on to a command that has no terminal, which would get them by its keys. */
const handedOn = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The exit code if nobody knows how the command ended. */
const lostCode = 125;

/**
 * Runs a command in a sandbox as `docker exec` does: hands input, output, signals and sizes on, and returns the command's exit code. What
 * was run is forgotten afterwards.
 */
export async function executeInSandbox(
  client: SkepClient, sandboxId: string, command: readonly string[], options: ExecuteOptions, streams: Streams,
): Promise<number> {
  const { interactive, tty, env, workingDir } = options;
  const { stdin, stdout, stderr } = streams;
  if (tty && interactive && !stdin.isTTY) throw new ClientError('The input is no terminal. Leave out -t, or run it in a terminal.');
  const path = `/api/v1/sandboxes/${encodeURIComponent(sandboxId)}/executions`;
  const terminal = tty ? sizeOf(stdout) : null;
  const body = { command, env, stdin: interactive, tty: terminal, working_dir: workingDir ?? null };
  // Before anything is started, so that no key is taken by the terminal of this machine.
  const isRaw = interactive && tty;
  if (isRaw) stdin.setRawMode(true);
  let stop = ignore;
  try {
    const started: Execution = await client.post(path, body, execution);
    const attachment = new Attachment(client, started, {
      output: async (stream, bytes) => {
        const target = stream === 'stdout' ? stdout : stderr;
        if (!target.write(bytes)) await once(target, 'drain');
      },
      refused: (message) => void stderr.write(`skep: ${message}${isRaw ? '\r' : ''}\n`),
      lost: ignore,
    });
    stop = handOn(attachment, options, streams);
    const { exitCode, detail } = await attachment.run();
    if (exitCode === null) stderr.write(`skep: ${detail ?? 'Nobody knows how the command ended.'}${isRaw ? '\r' : ''}\n`);
    await client.delete(`${path}/${encodeURIComponent(started.id)}`).catch(ignore);
    return exitCode ?? lostCode;
  } finally {
    if (isRaw) stdin.setRawMode(false);
    stop();
  }
}

/** For what fails the attachment too, which says so, and for what does no harm. */
const ignore = (): void => {};

/** Hands input, signals and sizes on. Returns the function that ends that. */
function handOn(attachment: Attachment, { interactive, tty }: ExecuteOptions, { stdin, stdout }: Streams): () => void {
  const resize = (): void => void attachment.resize(sizeOf(stdout)).catch(ignore);
  const signal = (name: NodeJS.Signals): void => void attachment.signal(name).catch(ignore);
  if (tty) stdout.on('resize', resize);
  if (!(interactive && tty)) for (const name of handedOn) process.on(name, signal);
  if (interactive) void pump(stdin, attachment).catch(ignore);
  return () => {
    stdout.off('resize', resize);
    for (const name of handedOn) process.off(name, signal);
    stdin.destroy();
  };
}

/** A terminal that does not know its size reports 0. */
function sizeOf({ columns, rows }: NodeJS.WriteStream): TerminalSize {
  return { cols: columns || 80, rows: rows || 24 };
}

async function pump(stdin: NodeJS.ReadStream, attachment: Attachment): Promise<void> {
  for await (const part of stdin) await attachment.write(z.instanceof(Uint8Array).parse(part));
  await attachment.closeInput();
}

import { once } from 'node:events';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { commandName } from '../../client/command-name.ts';
import { createClient, isFailure, type SkepClient, type SkepError } from '../../client/index.ts';
import { nameOfInput } from './arguments.ts';
import { safeLine, safeText } from './safe-text.ts';

/** A mistake of the user, with a message for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** Returns the error as one line. Returns the stack of an unexpected error. */
export function textOfError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof CommandError) return error.message;
  if (!isFailure(error)) return error.stack ?? error.message;
  return safeLine(messageOf(error)) + adviceFor(error);
}

/** The codes of Node and OpenSSL for certificates that are not trusted, have another name or have expired. */
const certificateCode = /\((?:\w*CERT\w*|UNABLE_TO_VERIFY_LEAF_SIGNATURE)\)/;

function adviceFor({ code, message }: SkepError): string {
  if (code === 'timed_out') return ' Check whether the request took effect, then try again.';
  if (code !== 'unreachable') return '';
  return certificateCode.test(message)
    ? ' Its certificate is not accepted. If it is from a certification authority of your own, set NODE_EXTRA_CA_CERTS to that certificate.'
    : ` Start one with \`${commandName} serve\`, or give its address with --url.`;
}

/** Returns the message of a failure. For an invalid request, it names the arguments of the command, not the fields of the API. */
function messageOf(error: SkepError): string {
  if (!isFailure(error, 'invalid_request')) return error.message;
  return error.context.problems.map(({ loc, msg }) => `${nameOfInput(loc)}: ${msg}`).join('; ');
}

/** How long a command repeats a request after a temporary failure, in milliseconds. Short, because a person waits. */
const retryForMs = 2000;

/** Returns a variable. An empty one counts as missing, as for the server: Compose sets variables without a value to an empty text. */
function variable(name: string): string | undefined {
  return process.env[name] || undefined;
}

/** Returns the client of a command. Throws if no key is set. */
export function clientOf({ url }: { readonly url?: string }): SkepClient {
  const key = variable('SKEP_API_KEY');
  if (key === undefined) {
    throw new CommandError(`Set SKEP_API_KEY to a key. On the server, \`${commandName} keys create <name>\` creates one.`);
  }
  const own = localUrl(variable('SKEP_HOST') ?? '127.0.0.1', variable('SKEP_PORT') ?? '3000');
  return createClient({ url: url ?? variable('SKEP_PUBLIC_URL') ?? own, key, retryForMs });
}

/** Returns the URL by which this machine reaches a server that listens on the host and the port. */
export function localUrl(host: string, port: string | number): string {
  const hosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  return `http://${hosts[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}`;
}

/** Prints a line for the person at the terminal, on standard error. */
export function notice(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Says that a list of the newest resources is not complete. */
export function olderNotice({ next_page_id: next }: { readonly next_page_id: string | null }): void {
  if (next !== null) notice('There are older ones. Only the newest are shown.');
}

/**
 * Handles an error of a standard stream. If nobody reads the stream any more, exits with 141, the exit code of a program that SIGPIPE ends:
 * Node ignores that signal. If the output can't be written, for example to a full disk, says why and exits with 1. Throws any other error.
 */
export function exitOnOutputError(error: unknown): never {
  if (!(error instanceof Error && 'syscall' in error && 'code' in error)) throw error;
  if (error.code === 'EPIPE') process.exit(141);
  process.stderr.write(`skep: Can't write the output: ${error.message}\n`);
  process.exit(1);
}

export const urlHelp = "the server's address; by default SKEP_PUBLIC_URL, or SKEP_HOST and SKEP_PORT";

/** Adds a command that talks to a server and can print JSON. */
export function subcommand(parent: Command, usage: string, description: string, options: { readonly isDefault?: boolean } = {}): Command {
  return parent
    .command(usage, options)
    .description(description)
    .option('--url <url>', urlHelp)
    .option('--json', 'print JSON as the API has it; what follows events prints one line for each');
}

export interface JsonOption {
  readonly json?: boolean;
}

/** The options of a command that talks to a server. */
export interface Common extends JsonOption {
  /** The address of the server. Default: the server of this machine's settings. */
  readonly url?: string;
}

export function print({ json = false }: JsonOption, value: unknown, text: string): void {
  process.stdout.write(json ? `${JSON.stringify(value, null, 2)}\n` : text);
}

/** Prints the bytes of a response. On a terminal, removes control characters. */
export async function printBody(body: AsyncIterable<Uint8Array> | null, target: NodeJS.WriteStream = process.stdout): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of body ?? []) {
    const shown = target.isTTY ? safeText(decoder.decode(bytes, { stream: true })) : bytes;
    if (!target.write(shown)) await once(target, 'drain');
  }
}

/** If npm started the process, one Ctrl-C sends two signals: one from the terminal and one from npm. */
export const duplicateSignalMs = 1000;

/** Fires on the first `SIGTERM` or `SIGINT`, with its name as the reason. A second one, a second later, ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const names = ['SIGTERM', 'SIGINT'];
  const stop = (name: string): void => {
    if (controller.signal.aborted) return;
    setTimeout(() => names.forEach((each) => process.off(each, stop)), duplicateSignalMs).unref();
    controller.abort(name);
  };
  for (const name of names) process.on(name, stop);
  return controller.signal;
}

/** A signal has stopped a command. */
export class Stopped extends Error {
  /** That of a program that the signal ends. */
  readonly exitCode: number;

  constructor(name: 'SIGTERM' | 'SIGINT') {
    super(name);
    this.exitCode = 128 + constants.signals[name];
  }
}

/** Runs a command with a stop signal. Rejects with `Stopped` if the command fails after the signal fired. */
export async function stoppable(command: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const signal = stopSignal();
  await command(signal).catch((error: unknown) => {
    throw signal.aborted ? new Stopped(signal.reason === 'SIGINT' ? 'SIGINT' : 'SIGTERM') : error;
  });
}

/** Returns options that follow a stream until the signal fires, and report when the server can't be reached. */
export function followOptions(signal: AbortSignal, report: (text: string) => void = notice) {
  const onLost = (failure: Error): void => report(`The connection to the server was lost, reconnecting: ${safeLine(failure.message)}`);
  return { signal, reconnectForMs: Infinity, onLost };
}

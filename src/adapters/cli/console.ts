import { once } from 'node:events';
import type { Command } from 'commander';
import stringWidth from 'string-width';
import { commandName } from '../../client/command-name.ts';
import { type api, createClient, isFailure, type SkepClient, type SkepError } from '../../client/index.ts';
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

/** Returns the client of a command. Throws if no key is set. */
export function clientOf({ url }: { readonly url?: string }): SkepClient {
  const { env } = process;
  const key = env['SKEP_API_KEY'] ?? '';
  if (key === '') throw new CommandError(`Set SKEP_API_KEY to a key. On the server, \`${commandName} keys create <name>\` creates one.`);
  const own = localUrl(env['SKEP_HOST'] ?? '127.0.0.1', env['SKEP_PORT'] ?? '3000');
  return createClient({ url: url ?? env['SKEP_PUBLIC_URL'] ?? own, key, retryForMs });
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

/** Prints the bytes of a response. On a terminal, removes control characters. Ends when the signal fires. */
export async function printBody(
  body: AsyncIterable<Uint8Array> | null, signal: AbortSignal, target: NodeJS.WriteStream = process.stdout,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of untilStopped(body ?? [], signal)) {
    const shown = target.isTTY ? safeText(decoder.decode(bytes, { stream: true })) : bytes;
    if (!target.write(shown)) await once(target, 'drain');
  }
}

export function conversationTable(items: readonly api.AppConversation[]): string {
  const rows = items.map(({ id, archived_at, start_status, execution_status, selected_repository, title, status_detail, ...item }) => {
    const current = start_status === 'READY' ? (execution_status ?? 'no agent') : start_status;
    const isArchived = archived_at !== null;
    const sandbox = isArchived && item.sandbox_status === 'MISSING' ? '-' : item.sandbox_status;
    const failed = start_status === 'ERROR' || execution_status === 'error' || item.status_reason?.code === 'changes_not_kept';
    const state = isArchived ? 'archived' : current;
    return [id, state, sandbox, selected_repository ?? '-', title ?? '-', failed ? (status_detail ?? '-') : '-'];
  });
  return table(['ID', 'STATE', 'SANDBOX', 'REPOSITORY', 'TITLE', 'ERROR'], rows);
}

export function sandboxTable(items: readonly api.Sandbox[]): string {
  const rows = items.map(({ id, status, pause_kind, sandbox_spec_id, last_active_at, status_detail }) => {
    const [detail, error] = ['ERROR', 'MISSING'].includes(status) ? [null, status_detail] : [status_detail, null];
    const shown = pause_kind === null ? status : `${status} (${pause_kind})`;
    return [id, shown, sandbox_spec_id, last_active_at, detail ?? '-', error ?? '-'];
  });
  return table(['ID', 'STATUS', 'SPEC', 'ACTIVE', 'DETAIL', 'ERROR'], rows);
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return columns([head, ...rows]);
}

/** Returns all members of a record, with their names in the API. Of a reason, only the code; the key of a sandbox is left to `--json`. */
export function recordText(record: object): string {
  const rows = Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
    const isKey = name === 'session_api_key' && value !== null;
    const isReason = name.endsWith('_reason') && typeof value === 'object' && value !== null && 'code' in value;
    const shown = isReason ? value.code : value;
    return (isKey ? ['(printed with --json)'] : valueLines(shown)).map((line, index) => [index === 0 ? name : '', line]);
  });
  return columns(rows);
}

/** Returns a line for each item of a list or member of a mapping, otherwise one. */
function valueLines(value: unknown): readonly string[] {
  if (value === null || value === undefined) return ['-'];
  if (typeof value !== 'object') return [typeof value === 'string' ? value : JSON.stringify(value)];
  const lines = Array.isArray(value)
    ? value.map((item) => valueLines(item).join(' '))
    : Object.entries(value).map(([name, each]) => `${name}=${String(each)}`);
  return lines.length === 0 ? ['-'] : lines;
}

function columns(rows: readonly (readonly string[])[]): string {
  const all = rows.map((row) => row.map(safeLine));
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => stringWidth(row[column] ?? '')))) ?? [];
  const padded = (cell: string, column: number): string => cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell));
  return all.map((row) => `${row.map(padded).join('  ').trimEnd()}\n`).join('');
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

/** Returns options that follow a stream until the signal fires, and report when the server can't be reached. */
export function followOptions(signal: AbortSignal, report: (text: string) => void = notice) {
  const onLost = (failure: Error): void => report(`The connection to the server was lost, reconnecting: ${safeLine(failure.message)}`);
  return { signal, reconnectForMs: Infinity, onLost };
}

/** Yields the items until the signal fires, and then ends without an error. */
export async function* untilStopped<T>(items: AsyncIterable<T> | Iterable<T>, signal: AbortSignal): AsyncGenerator<T, void> {
  try {
    yield* items;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

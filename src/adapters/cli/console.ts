import { type Api, ClientError, createApi, harmlessLine } from '../../client/client.ts';

/** The variables of a process, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The server that a command of the client talks with. Throws a {@link ClientError} where no key is set. */
export function serverOf(env: Environment, url: string | undefined): Api {
  const key = env['SKEP_API_KEY'] ?? '';
  if (key === '') throw new ClientError('Set SKEP_API_KEY to a key of the server; `skep keys create <name>` makes one.');
  const own = `http://${reachable(env['SKEP_HOST'] ?? '127.0.0.1')}:${env['SKEP_PORT'] ?? '3000'}`;
  return createApi({ url: (url ?? env['SKEP_PUBLIC_URL'] ?? own).replace(/\/+$/, ''), key });
}

/** An address by which this machine reaches what listens on the host. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

/** Tells the person at the terminal something that is no output of the command. */
export function notice(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Rows under a head, in columns. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map(harmlessLine));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()}\n`).join('');
}

/** Answers with the first signal that asks the process to end. A second one ends it at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  return promise;
}

/** Fires with the first signal that asks the process to end. */
export function signalled(): AbortSignal {
  const controller = new AbortController();
  void untilSignal().then(() => controller.abort());
  return controller.signal;
}

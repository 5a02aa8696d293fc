import { ClientError, createClient, safeLine, type SkepClient } from '../../client/client.ts';

/** Returns the client of a command. Throws a {@link ClientError} if no key is set. */
export function clientOf(url: string | undefined): SkepClient {
  const { env } = process;
  const key = env['SKEP_API_KEY'] ?? '';
  if (key === '') throw new ClientError('Set SKEP_API_KEY to a key of the server; `skep keys create <name>` makes one.');
  const own = localUrl(env['SKEP_HOST'] ?? '127.0.0.1', env['SKEP_PORT'] ?? '3000');
  return createClient({ url: (url ?? env['SKEP_PUBLIC_URL'] ?? own).replace(/\/+$/, ''), key });
}

/** Returns the URL by which this machine reaches a server that listens on the host and the port. */
export function localUrl(host: string, port: string | number): string {
  const hosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' };
  return `http://${hosts[host] ?? (host.includes(':') ? `[${host}]` : host)}:${port}`;
}

/** Prints a line for the person at the terminal that is not part of the command's output. */
export function notice(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Returns the rows in columns below a head. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map(safeLine));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()}\n`).join('');
}

/** Returns a signal that fires when the process is asked to end, with `SIGTERM` or `SIGINT` as its reason. The next one ends it at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => controller.abort(signal));
  return controller.signal;
}

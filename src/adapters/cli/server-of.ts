import { createApi, type Api } from '../../client/api.ts';
import { ClientError } from '../../client/client-error.ts';
import type { Environment } from './environment.ts';

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

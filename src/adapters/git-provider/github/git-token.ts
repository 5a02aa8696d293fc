import type { GitHubClient } from './options.ts';
import { createTransport, type TransportOptions } from './transport.ts';

/** Tells the token that git may use; null where there is no credential. */
export type GitToken = (signal: AbortSignal) => Promise<string | null>;

/**
 * The token of an App's installation may have to be asked for: to the transport that is a request like others, with the
 * same manners and failures.
 */
export function createGitToken({ auth }: GitHubClient, options: TransportOptions): GitToken {
  if (auth === undefined) return async () => null;
  // Who has a token already does not look at the type.
  const request = async () => ({ status: 200, headers: {}, data: tokenIn(await auth({ type: 'installation' })) });
  const transport = createTransport({ request }, options);
  return async (signal) => {
    const { text } = await transport.send({ route: '' }, signal);
    return text === null || text === '' ? null : text;
  };
}

/** Empty where the client is nobody's. */
function tokenIn(authentication: unknown): string {
  if (typeof authentication !== 'object' || authentication === null || !('token' in authentication)) return '';
  return typeof authentication.token === 'string' ? authentication.token : '';
}

import type { GitRemote } from '../../ports/git-provider.ts';

/** A credential in the form in which hosts take it from git: a user name, of their choice, and the token as the password. */
export function basicAuthorization(user: string, token: string): string {
  return `Basic ${Buffer.from(`${user}:${token}`, 'utf8').toString('base64')}`;
}

/** The repository below the address of a host's pages, which has no slash at its end. */
export function hostedRemote(pages: string, repository: string, authorization: string | null): GitRemote {
  const path = repository.split('/').map(encodeURIComponent).join('/');
  return { url: `${pages}/${path}.git`, authorization };
}

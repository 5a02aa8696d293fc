import { withHostDefaults, type GitHostOptions } from '../git-host-options.ts';
import { parseHostUrl, type HostUrl } from './host-url.ts';

/**
 * What is used of a ready-made client (`new Gitlab({ host, oauthToken })`): its URL and its credential. The requests
 * are made here, since the client's own follow redirects and pages to wherever they lead.
 */
export interface GitLabClient {
  readonly Projects: {
    /** `https://gitlab.com/api/v4/` */
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly authHeaders: Readonly<Record<string, () => Promise<string>>>;
  };
}

/**
 * One of `token` and `client`, or neither: then public projects only are read. A token needs the scope `read_api`.
 *
 * GitLab answers for the history of a file with that of its former names too, unless it knows the parameter `follow` of
 * its commits API. A version without it dates a file that was moved by the first commit of its first name.
 */
export interface GitLabOptions extends GitHostOptions {
  /** A personal, project or group access token. */
  readonly token?: string;
  readonly client?: GitLabClient;
  /** Where the host's pages are, with its path if it has one: `https://gitlab.com` (the default), `https://HOST/gitlab`. */
  readonly url?: string;
}

export type ResolvedOptions = Required<Omit<GitLabOptions, 'token' | 'client' | 'url'>> &
  Pick<GitLabOptions, 'token' | 'client'> & { readonly host: HostUrl };

const publicHost = 'https://gitlab.com';
// What a header takes; an error of its own would tell the value.
const tokenForm = /^[\u0021-\u007e]+$/u;

/** Throws a `TypeError` where an option is not of its form, or contradicts another. */
export function resolveOptions({ url, ...options }: GitLabOptions): ResolvedOptions {
  const { token, client } = options;
  if (token !== undefined && client !== undefined) throw new TypeError('GitLab takes one of token and client');
  if (client !== undefined && url !== undefined) throw new TypeError('GitLab takes one of url and client');
  if (token !== undefined && !tokenForm.test(token)) {
    throw new TypeError('The GitLab token is empty, or has a character that no token has');
  }
  return {
    ...withHostDefaults(options, { concurrency: 8, maxAnswerBytes: 16 * 1024 * 1024 }),
    host: parseHostUrl(client?.Projects.url.replace(/\/api\/v4\/*$/u, '') ?? url ?? publicHost),
  };
}

/** Where a GitLab is. */
export interface HostUrl {
  /** `gitlab.example.com`, with the port where there is one. */
  readonly name: string;
  readonly origin: string;
  /** The API's path, without a slash at the end: `/gitlab/api/v4`. */
  readonly apiPath: string;
  /** Where its pages are, and git fetches projects from, without a slash at the end. */
  readonly pages: string;
}

/** Reads the URL that a deployment configures. Throws a `TypeError`, which does not show it, where it is none. */
export function parseHostUrl(text: string): HostUrl {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new TypeError('The URL of GitLab is not of the form https://gitlab.example.com');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('The URL of GitLab takes no user name, password, query or fragment');
  }
  const path = url.pathname.replace(/\/+$/u, '');
  return { name: url.host, origin: url.origin, apiPath: `${path}/api/v4`, pages: `${url.origin}${path}` };
}

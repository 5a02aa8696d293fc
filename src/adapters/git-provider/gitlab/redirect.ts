import type { Answer } from './answer.ts';
import { failed } from './failures.ts';
import type { HostUrl } from './host-url.ts';

const statuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Where the answer sends the request on to; null where it does not. A project that was renamed is such a reason, and the
 * only one: the same is asked of it by its other name. Everything else is refused, since the credential is for nobody else,
 * and the host does not choose what is asked for.
 */
export function redirectTarget({ status, headers }: Answer, from: URL, host: HostUrl): URL | null {
  if (!statuses.has(status)) return null;
  const location = headers.get('location') ?? '';
  const target = URL.canParse(location, from.href) ? new URL(location, from) : null;
  if (target === null) throw failed('it redirects to what is no URL');
  if (!isInside(target, host)) throw failed('it redirects to an address outside its API; check the configured URL');
  const asked = askedOf(from, host);
  if (asked === null || asked !== askedOf(target, host)) throw failed('it redirects to what was not asked for');
  const renamed = new URL(from);
  renamed.pathname = target.pathname;
  return renamed;
}

/** Is the URL one of the API's? */
export function isInside(url: URL, { origin, apiPath }: HostUrl): boolean {
  return url.origin === origin && url.username === '' && url.password === '' && url.pathname.startsWith(`${apiPath}/`);
}

/** What is asked of a project, apart from its name; null for what is of no project. */
function askedOf({ pathname }: URL, { apiPath }: HostUrl): string | null {
  const [, projects, project = '', ...asked] = pathname.slice(apiPath.length).split('/');
  return projects === 'projects' && project !== '' ? asked.join('/') : null;
}

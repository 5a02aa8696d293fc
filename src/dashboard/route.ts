import { signal } from '@preact/signals';

/** The pages in the navigation. */
export const places = ['overview', 'conversations', 'sandboxes', 'microagents', 'specs', 'keys', 'settings'] as const;

/** The page in the address, after `#`: `#/sandboxes/sb-1?tab=files`. */
interface Route {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export const route = signal<Route>(currentRoute());

addEventListener('hashchange', () => {
  route.value = currentRoute();
  scrollTo(0, 0);
});

function currentRoute(): Route {
  const [path = '', query] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export type Query = Readonly<Record<string, string | null | undefined>>;

/** Returns the address of a page of the dashboard. */
export function href(path: readonly string[], query: Query = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
  return `#/${path.map(encodeURIComponent).join('/')}${search}`;
}

export function navigate(path: readonly string[], query?: Query): void {
  location.hash = href(path, query);
}

/** Changes the query in the address without a new history entry. */
export function setQuery(changes: Query): void {
  // The route may not follow the address yet, if a dialog closes while another page is opened.
  const { path, query } = currentRoute();
  history.replaceState(null, '', href(path, { ...Object.fromEntries(query), ...changes }));
  route.value = currentRoute();
}

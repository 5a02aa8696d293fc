import type { Connection } from './connection.ts';

/**
 * Remembers what was read since the database last changed. A client that watches its sandboxes asks for the same page
 * again and again, and to find out that nothing has changed takes far less than to read the page. The database itself
 * says so, whichever process wrote last, so nothing remembered is ever out of date.
 */
export function createPageMemory<T>(connection: Connection, capacity = 100): (key: string, read: () => T) => T {
  const pages = new Map<string, T>();
  let writes = -1;
  let version = -1;

  return (key, read) => {
    const now = connection.version();
    if (writes !== connection.writes() || version !== now) {
      pages.clear();
      writes = connection.writes();
      version = now;
    }
    const known = pages.get(key);
    if (known !== undefined) return known;
    const page = read();
    if (pages.size >= capacity) pages.clear();
    pages.set(key, page);
    return page;
  };
}

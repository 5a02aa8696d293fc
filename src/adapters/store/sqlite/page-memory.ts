import type { Connection } from './connection.ts';

export interface PageMemory<T> {
  /** What is written to the pages' table goes through here. */
  readonly connection: Connection;
  /** What was read under the key, or what `read` answers with now. */
  readonly remembered: (key: string, read: () => T) => T;
}

/**
 * Remembers what was read of a table since it last changed. A client that watches its sandboxes asks for the same page
 * again and again, and to find out that nothing has changed takes far less than to read the page. Writes of this connection
 * are counted, those to other tables left out; those of others the database itself tells of. So nothing remembered is ever out of date.
 */
export function createPageMemory<T>(connection: Connection, capacity = 100): PageMemory<T> {
  const pages = new Map<string, T>();
  let version = -1;

  return {
    connection: {
      ...connection,
      run(statement, values) {
        pages.clear();
        return connection.run(statement, values);
      },
    },
    remembered(key, read) {
      const now = connection.version();
      if (version !== now) {
        pages.clear();
        version = now;
      }
      const known = pages.get(key);
      if (known !== undefined) return known;
      const page = read();
      if (pages.size >= capacity) pages.clear();
      pages.set(key, page);
      return page;
    },
  };
}

/** A map with a limit of entries and a limit of their total size. It removes the least recently used entries first. */
export function createLruMap<T>(maxEntries: number, maxSize: number, sizeOf: (value: T) => number) {
  const entries = new Map<string, T>();
  let size = 0;

  function remove(key: string): T | null {
    const value = entries.get(key);
    if (value === undefined) return null;
    size -= sizeOf(value);
    entries.delete(key);
    return value;
  }

  function add(key: string, value: T): void {
    entries.set(key, value);
    size += sizeOf(value);
  }

  return {
    get(key: string): T | null {
      const value = remove(key);
      if (value !== null) add(key, value);
      return value;
    },
    delete: (key: string): void => void remove(key),
    /** Does not store a value that alone exceeds the size limit. */
    set(key: string, value: T): void {
      remove(key);
      if (sizeOf(value) > maxSize) return;
      add(key, value);
      for (const oldest of entries.keys()) {
        if (entries.size <= maxEntries && size <= maxSize) return;
        remove(oldest);
      }
    },
  };
}

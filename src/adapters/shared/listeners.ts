type Listener<T> = (news: T) => void;

/** Those who want to be told of something. The same function may listen twice; each time ends on its own. */
export class Listeners<T> {
  readonly #all = new Set<{ readonly listener: Listener<T> }>();

  /** Returns the function that ends it. */
  add(listener: Listener<T>): () => void {
    const entry = { listener };
    this.#all.add(entry);
    return () => void this.#all.delete(entry);
  }

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  clear(): void {
    this.#all.clear();
  }

  /** Tells those who listen now, and still do when it is their turn. What one throws is a warning of the process: it has happened. */
  tell(news: T): void {
    for (const entry of Array.from(this.#all)) {
      try {
        if (this.#all.has(entry)) entry.listener(news);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
}

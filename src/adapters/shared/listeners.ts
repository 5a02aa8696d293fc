type Listener<T> = (event: T) => void;

/** The listeners of one kind of event. A function that is added twice is called twice. Each subscription ends separately. */
export class Listeners<T> {
  readonly #all = new Set<{ readonly listener: Listener<T> }>();

  /** Returns a function that removes the listener. */
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

  /** Calls each listener, unless an earlier one has removed it. An error of a listener becomes a warning of the process. */
  notify(event: T): void {
    for (const entry of Array.from(this.#all)) {
      try {
        if (this.#all.has(entry)) entry.listener(event);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
}

/**
 * Closes services in the reverse order of their opening. When a factory has failed and the stack is closed, another factory may still be
 * opening something: what is added then is closed at once.
 */
export class Closers extends AsyncDisposableStack {
  #late: AsyncDisposableStack | null = null;

  override use<T extends AsyncDisposable | Disposable | null | undefined>(value: T): T {
    return this.disposed ? this.#lateStack().use(value) : super.use(value);
  }

  override adopt<T>(value: T, close: (value: T) => PromiseLike<void> | void): T {
    return this.disposed ? this.#lateStack().adopt(value, close) : super.adopt(value, close);
  }

  override defer(close: () => PromiseLike<void> | void): void {
    if (this.disposed) this.#lateStack().defer(close);
    else super.defer(close);
  }

  /** Returns the stack for all that a factory adds in one go, so that it is closed in reverse order, too. */
  #lateStack(): AsyncDisposableStack {
    if (this.#late !== null) return this.#late;
    const late = new AsyncDisposableStack();
    this.#late = late;
    queueMicrotask(() => {
      this.#late = null;
      // The caller has the error of the factory that failed. Nobody can handle another one.
      late.disposeAsync().catch(() => undefined);
    });
    return late;
  }
}

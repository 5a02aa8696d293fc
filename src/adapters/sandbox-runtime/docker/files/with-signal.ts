/** Options of a call with the signal that ends it, which the client takes and its types leave out. */
export function withSignal<T>(options: T, abortSignal: AbortSignal): T & { readonly abortSignal: AbortSignal } {
  return { ...options, abortSignal };
}

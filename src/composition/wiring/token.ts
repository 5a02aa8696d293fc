/** The name of a service in the container, which carries the service's type. */
export interface Token<T> {
  readonly id: symbol;
  /** Never there at run time: it makes `Token<A>` and `Token<B>` different types. */
  readonly service?: (service: T) => T;
}

/** A new token; the description appears in the container's errors. */
export function token<T>(description: string): Token<T> {
  return { id: Symbol(description) };
}

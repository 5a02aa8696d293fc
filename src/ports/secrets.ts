/** The deployment's secrets, by the names of its environment. */
export interface Secrets {
  /** Returns the value; null if it is not set. Callers never put it into a response, an event or a log. */
  get(name: string): string | null;
}

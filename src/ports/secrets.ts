/** The deployment's secrets, by the names of its environment. */
export interface Secrets {
  /** The value; null where it is not set. It reaches only what it is meant for: never an answer, an event or a log. */
  get(name: string): string | null;
}

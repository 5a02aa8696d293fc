/** The secrets of the deployment, by the names that specs use. */
export interface Secrets {
  /**
   * Returns the value, or null if it is not set. It is called each time a process starts, so a changed value needs no restart if the
   * adapter sees it. Only the process that the spec names gets the value, never a response, an event or a log. Must not throw.
   */
  get(name: string): string | null;
}

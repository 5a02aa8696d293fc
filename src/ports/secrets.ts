/** The secrets of the deployment, by the names that specs use. */
export interface Secrets {
  /**
   * Returns the value, or null if it is not set. It is asked each time a process starts, so a changed value needs no restart if the
   * adapter sees it. The value reaches only the process that the spec names, and never a response, an event or a log. Must not throw.
   */
  get(name: string): string | null;
}

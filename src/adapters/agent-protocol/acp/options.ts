export interface AcpOptions {
  /** A line of the agent's that is longer ends the connection; 16 MiB unless it is said. */
  readonly maxLineBytes?: number;
  /** How many lines in a row may be no message of the protocol before the connection ends; 1,000 unless it is said. */
  readonly maxRubbishLines?: number;
}

/** How long conversations wait for what, in milliseconds. */
export interface ConversationTiming {
  /** For a repository to be fetched and put into the sandbox. */
  readonly prepareWithinMs: number;
  /** For the microagents of a repository. */
  readonly listWithinMs: number;
  /** From a request to cancel a turn until the agent that does not heed it is ended. */
  readonly cancelWithinMs: number;
  /** Between two notes of progress in `status_detail`. */
  readonly progressEveryMs: number;
}

export const defaultTiming: ConversationTiming = {
  prepareWithinMs: 30 * 60_000,
  listWithinMs: 2 * 60_000,
  cancelWithinMs: 10_000,
  progressEveryMs: 1000,
};

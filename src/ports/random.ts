/** A source of values that nobody can guess. Both methods are synchronous and never throw. */
export interface Random {
  /**
   * Returns a new id that begins with the prefix and a dash: lower-case, a DNS label of at most 63 characters, never returned twice. All
   * ids with one prefix have one length and the same dashes, and no name that a person chooses has this form.
   */
  id(prefix: string): string;

  /** Returns a new secret of at least 256 bits, in characters that a URL and a header accept. */
  secret(): string;
}

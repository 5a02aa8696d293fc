/** Makes values that nobody can guess. */
export interface Random {
  /** Returns a new id: a lower-case DNS label, never returned twice. */
  id(prefix: string): string;

  /** Returns a new secret of at least 256 bits, in characters that are safe in a URL and a header. */
  secret(): string;
}

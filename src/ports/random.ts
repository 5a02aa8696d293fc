/** The source of what nobody can guess. */
export interface Random {
  /** A new id: lower-case, a DNS label, never given twice. */
  id(prefix: string): string;

  /** A new secret of at least 256 bits, in characters that a URL and a header take. */
  secret(): string;
}

/** What the host answered. */
export interface Answer {
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Null where it was an error, whose body is not read further. */
  readonly text: string | null;
  /** What an error said, to be recognised by, never to be passed on. */
  readonly message: string;
}

/** What is sent back for a request. */
export interface Answer {
  readonly status: number;
  /** Null where there is no body. */
  readonly body: string | null;
  /** The value of Content-Type. */
  readonly media: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is sent back part by part, for as long as there are any. */
export interface StreamAnswer {
  readonly status: number;
  readonly media: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly parts: AsyncIterable<string>;
}

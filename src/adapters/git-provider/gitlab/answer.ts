/** What the host answered to a request. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Does it say to be JSON? */
export function isJson({ headers }: Answer): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/iu.test(headers.get('content-type') ?? '');
}

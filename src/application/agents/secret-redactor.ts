const mask = '**********';

/** What is shorter is found in any text, and is no secret. */
const shortest = 4;

/** Takes the values of secrets out of what an agent says. */
export class SecretRedactor {
  readonly #secrets: readonly string[];
  readonly #pattern: RegExp | null;

  constructor(values: readonly string[]) {
    this.#secrets = [...new Set(values)].filter((value) => value.length >= shortest).toSorted((a, b) => b.length - a.length);
    const alternatives = this.#secrets.map((secret) => secret.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join('|');
    this.#pattern = alternatives === '' ? null : new RegExp(alternatives, 'g');
  }

  /** The text without them. */
  text(text: string): string {
    return this.#pattern === null ? text : text.replace(this.#pattern, mask);
  }

  /** The same for every text in plain data. */
  data<T>(value: T): T {
    if (this.#pattern === null) return value;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape stays; only texts are replaced
    return JSON.parse(JSON.stringify(value), (_, one: unknown) => (typeof one === 'string' ? this.text(one) : one)) as T;
  }

  /** Of a text whose beginning is missing: without what may be the end of a secret there, too. */
  rest(text: string): string {
    const clean = this.text(text);
    const longest = Math.max(0, ...this.#secrets.map((secret) => endOf(secret, clean)));
    return clean.slice(longest);
  }

  /**
   * Of a text that goes on: what can be said already, and what may be the beginning of a secret and has to wait for what
   * follows.
   */
  partial(text: string): { readonly said: string; readonly held: string } {
    const from = this.#heldFrom(text);
    return { said: this.text(text.slice(0, from)), held: text.slice(from) };
  }

  #heldFrom(text: string): number {
    const free = [...text.matchAll(this.#pattern ?? /(?!)/g)].reduce((end, match) => Math.max(end, match.index + match[0].length), 0);
    const longest = (this.#secrets[0]?.length ?? 1) - 1;
    for (let at = Math.max(free, text.length - longest); at < text.length; at += 1) {
      const end = text.slice(at);
      if (this.#secrets.some((secret) => secret.startsWith(end))) return at;
    }
    return text.length;
  }
}

/** How many characters at the beginning of the text are the end of the secret. */
function endOf(secret: string, text: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length > 0; length -= 1) {
    if (secret.endsWith(text.slice(0, length))) return length;
  }
  return 0;
}

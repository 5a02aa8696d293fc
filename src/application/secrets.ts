import { secretValues } from '../domain/credentials.ts';
import type { Sandbox } from '../domain/sandbox.ts';
import type { Secrets } from '../ports/secrets.ts';

interface ResolvedSecrets {
  /** By name. A missing secret has an empty value. */
  readonly values: Readonly<Record<string, string>>;
  /** The names of the secrets that the deployment does not have. */
  readonly missing: readonly string[];
}

export function resolveSecrets(names: readonly string[], secrets: Secrets): ResolvedSecrets {
  const values = Object.fromEntries(names.map((name) => [name, secrets.get(name) ?? '']));
  return { values, missing: names.filter((name) => secrets.get(name) === null) };
}

const mask = '**********';

/** A shorter value occurs in many texts by chance, so it is not treated as a secret. */
const minSecretLength = 4;

/** Properties with Skep's own constants, which are not redacted. */
const constantProperties: ReadonlySet<string> = new Set(['code', 'kind']);

/** Redacts the secrets of all programs of the sandbox. They may run as one user, so each can read the secrets of the others. */
export function redactorOf({ sessionApiKey, spec: { secrets: names, initialEnv, agent } }: Sandbox, secrets: Secrets): SecretRedactor {
  const { values } = resolveSecrets([...names, ...(agent?.secrets ?? [])], secrets);
  return new SecretRedactor([sessionApiKey, ...Object.values(values), ...secretValues(initialEnv), ...secretValues(agent?.env ?? {})]);
}

/** Returns the bytes as a text with one character per byte. {@link toBytes} reverses this. */
function byteText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function toBytes(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

export class SecretRedactor {
  readonly #secrets: readonly string[];
  readonly #pattern: RegExp | null;

  constructor(values: readonly string[]) {
    const longEnough = [...new Set(values)].filter((value) => value.length >= minSecretLength);
    this.#secrets = longEnough.toSorted((a, b) => b.length - a.length);
    const alternatives = this.#secrets.map((secret) => RegExp.escape(secret)).join('|');
    this.#pattern = alternatives === '' ? null : new RegExp(alternatives, 'g');
  }

  /** Redacts a stream. Holds back at most the beginning of a secret. With `isTail`, the stream may begin with the end of a secret. */
  redactStream({ isTail }: { readonly isTail: boolean }): TransformStream<Uint8Array, Uint8Array> {
    const redactor = new SecretRedactor(this.#secrets.map((secret) => byteText(Buffer.from(secret))));
    let held = '';
    let isBeginning = isTail;
    const take = (isLast: boolean): string => {
      if (isBeginning) {
        if (!isLast && redactor.#isWithinSecret(held)) return '';
        held = redactor.#withoutEndOfSecret(held);
        isBeginning = false;
      }
      const { safe, held: rest } = isLast ? { safe: redactor.redactText(held), held: '' } : redactor.redactChunk(held);
      held = rest;
      return safe;
    };
    return new TransformStream({
      transform(chunk, controller) {
        held += byteText(chunk);
        const safe = take(false);
        if (safe !== '') controller.enqueue(toBytes(safe));
      },
      flush(controller) {
        const safe = take(true);
        if (safe !== '') controller.enqueue(toBytes(safe));
      },
    });
  }

  redactText(text: string): string {
    return this.#pattern === null ? text : text.replace(this.#pattern, mask);
  }

  redactJson<T>(value: T): T {
    if (this.#pattern === null) return value;
    const redact = (key: string, one: unknown) => (typeof one === 'string' && !constantProperties.has(key) ? this.redactText(one) : one);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape stays; only texts are replaced
    return JSON.parse(JSON.stringify(value), redact) as T;
  }

  /** Redacts a text whose beginning is missing. It may begin with the end of a secret, which is removed. */
  redactTail(text: string): string {
    return this.redactText(this.#withoutEndOfSecret(text));
  }

  /**
   * Redacts a text that continues. `safe` can be passed on. `held` may be the beginning of a secret. The caller puts
   * `held` in front of the next chunk.
   */
  redactChunk(text: string): { readonly safe: string; readonly held: string } {
    const from = this.#startOfUnfinishedSecret(text);
    return { safe: this.redactText(text.slice(0, from)), held: text.slice(from) };
  }

  #isWithinSecret(text: string): boolean {
    return this.#secrets.some((secret) => secret.includes(text));
  }

  #withoutEndOfSecret(text: string): string {
    const whole = this.#secrets.find((secret) => text.startsWith(secret))?.length ?? 0;
    const end = Math.max(0, ...this.#secrets.map((secret) => endOfSecretAtStart(secret, text)));
    // A shorter end may be chance, and reveals nothing.
    return end < minSecretLength || end <= whole ? text : text.slice(end);
  }

  /**
   * Returns where a secret may begin whose rest is missing; without one, the length of the text. A whole secret at the end may be the
   * beginning of a longer one.
   */
  #startOfUnfinishedSecret(text: string): number {
    const longest = this.#secrets[0]?.length ?? 1;
    const matches = [...text.matchAll(this.#pattern ?? /(?!)/g)].map(({ index, 0: { length } }) => ({ start: index, end: index + length }));
    for (let at = Math.max(0, text.length - longest + 1); at < text.length; at += 1) {
      const rest = text.slice(at);
      const isUnfinished = this.#secrets.some((secret) => secret.length > rest.length && secret.startsWith(rest));
      if (isUnfinished && !matches.some(({ start, end }) => start < at && at < end)) return at;
    }
    return text.length;
  }
}

/** Returns how many characters at the start of the text are the end of the secret. */
function endOfSecretAtStart(secret: string, text: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length > 0; length -= 1) {
    if (secret.endsWith(text.slice(0, length))) return length;
  }
  return 0;
}

const secretName = /(secret|token|password|passwd|credential|private|api_?key|access_?key|auth)/i;

const mask = '**********';

export function maskEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, isSecret(name, value) ? mask : value]));
}

/** The start of a password in a URL. A shell variable is not a password, and neither is a port before a path with an `@`. */
const urlPasswordStart = /(?<=\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)(?!\$|\d+[/?#,])(?=.)/gi;

const skepKey = /\b(?:skep_[\w-]{20,}|e2b_[0-9a-f]{20,})\b/;

/** Owners choose the texts, so each form is searched in time that is linear in the length of the text. */
const credentials = [
  // Tokens of GitHub, GitLab, Slack, OpenAI and Anthropic, Google, AWS, Docker Hub, npm, Stripe and Hugging Face.
  /\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|rt)-[\w-]{20,}|xox[abeoprs]-[\w-]{10,}|AIza[\w-]{35})/,
  // Other words begin with `sk-` too, so the rest must look random. Only the first `sk-` of a word is checked; its rest is the longest.
  /\bsk-(?<!\bsk-[\w-]*?sk-)(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}/,
  /\b(?:[sr]k_live_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{30,})\b/,
  // A JSON Web Token, found by its first dot.
  /\.(?<=\beyJ[\w-]{10,}\.)eyJ[\w-]{10,}\.[\w-]{10,}/,
  /\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}|dckr_pat_[\w-]{20,}|npm_[A-Za-z0-9]{30,})\b/,
  skepKey,
  /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/,
];

/** Returns true if the text has the form of a credential, which belongs in `secrets`. */
export function looksLikeCredential(text: string): boolean {
  return replaceUrlPasswords(text, '') !== text || credentials.some((form) => form.test(text));
}

/** Returns true if the text contains a text with the form of a key of Skep. */
export function containsKey(text: string): boolean {
  return skepKey.test(text);
}

export function maskUrlPasswords(text: string): string {
  return replaceUrlPasswords(text, mask);
}

/** A password may contain a slash or an `@`, so it ends at the last `@` of the word. */
function replaceUrlPasswords(text: string, replacement: string): string {
  return text.replaceAll(/(?<![^\s"'])[^\s"']+(?=@)/g, (word, wordStart: number) => {
    const end = wordStart + word.length;
    urlPasswordStart.lastIndex = wordStart;
    const start = urlPasswordStart.exec(text.slice(0, end))?.index;
    return start === undefined ? word : text.slice(wordStart, start) + replacement;
  });
}

/** Common words that are not secret under any name. */
const ordinaryWord = /^(true|false|none|null)$/i;

export function secretValues(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => (isSecret(name, value) && !ordinaryWord.test(value) ? [value] : []));
}

function isSecret(name: string, value: string): boolean {
  return secretName.test(name) || looksLikeCredential(value);
}

/** Compares two secrets in a time that does not depend on where they differ. An empty text is no secret. */
export function isSameSecret(one: string, other: string): boolean {
  let difference = one === '' ? 1 : one.length ^ other.length;
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at % Math.max(1, other.length));
  return difference === 0;
}

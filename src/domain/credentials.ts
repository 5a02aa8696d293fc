const secretName = /(secret|token|password|passwd|credential|private|api_?key|access_?key|auth)/i;

const mask = '**********';

export function maskEnv(env: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, isSecret(name, value) ? mask : value]));
}

/** A password in a URL may contain a slash. A shell variable is not a password, and neither is a port before a path with an `@`. */
const urlPassword = /(?<=\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)(?!\$|\d+[/?#,])[^\s"']+(?=@)/i;

const credentials = [
  urlPassword,
  // Tokens of GitHub, GitLab, Slack, OpenAI and Anthropic, Google, AWS, Docker Hub, npm, Stripe, Hugging Face and Skep.
  /\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|rt)-[\w-]{20,}|xox[abeoprs]-[\w-]{10,}|AIza[\w-]{35})/,
  // Other words begin with `sk-` too, so the rest must look random.
  /\bsk-(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}/,
  /\b(?:[sr]k_live_[A-Za-z0-9]{16,}|hf_[A-Za-z0-9]{30,})\b/,
  // A JSON Web Token.
  /\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}/,
  /\b(?:(?:AKIA|ASIA)[A-Z0-9]{16}|dckr_pat_[\w-]{20,}|npm_[A-Za-z0-9]{30,}|skep_[\w-]{20,}|e2b_[0-9a-f]{20,})\b/,
  /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----/,
];

/** Returns true if the text has the form of a credential, which belongs in `secrets`. */
export function looksLikeCredential(text: string): boolean {
  return credentials.some((form) => form.test(text));
}

export function maskUrlPasswords(text: string): string {
  return text.replaceAll(new RegExp(urlPassword, 'gi'), mask);
}

/** Common words that are not secret under any name. */
const ordinaryWord = /^(true|false|none|null)$/i;

export function secretValues(env: Readonly<Record<string, string>>): string[] {
  return Object.entries(env).flatMap(([name, value]) => (isSecret(name, value) && !ordinaryWord.test(value) ? [value] : []));
}

function isSecret(name: string, value: string): boolean {
  return secretName.test(name) || looksLikeCredential(value);
}

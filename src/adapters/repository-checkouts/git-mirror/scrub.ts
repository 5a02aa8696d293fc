/** The text without anything of the credential, in whatever form git may tell it. */
export function scrub(text: string, authorization: string | null): string {
  return secretsIn(authorization).reduce((scrubbed, secret) => scrubbed.replaceAll(secret, '***'), text);
}

function secretsIn(authorization: string | null): string[] {
  if (authorization === null) return [];
  const value = authorization.slice(authorization.indexOf(' ') + 1);
  const decoded = Buffer.from(value, 'base64').toString('utf8');
  const password = decoded.slice(decoded.indexOf(':') + 1);
  return [authorization, value, decoded, password, encodeURIComponent(password)].filter((secret) => secret.length > 3);
}

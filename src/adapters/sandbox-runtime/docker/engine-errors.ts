/** The status that the engine itself answered with; null where it is another error. */
export function statusOf(error: unknown): number | null {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : null;
}

/** What the engine said: `No such image: nowhere:latest`. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const said = 'json' in error && typeof error.json === 'object' && error.json !== null && 'message' in error.json ? error.json.message : null;
  return typeof said === 'string' ? said : error.message;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no engine listens at its socket; start Docker, or say where it is with SKEP_DOCKER_HOST',
  ECONNREFUSED: 'its engine does not answer; start Docker, or say where it is with SKEP_DOCKER_HOST',
  EACCES: "its socket may not be used by this process's user; add the user to the group that owns it",
  EPERM: "its socket may not be used by this process's user; add the user to the group that owns it",
  ECONNRESET: 'its engine closed the connection',
  EPIPE: 'its engine closed the connection',
  ENOTFOUND: "its engine's host is not known; correct SKEP_DOCKER_HOST or DOCKER_HOST",
  EAI_AGAIN: "its engine's host can't be looked up now",
  EHOSTUNREACH: "its engine's host can't be reached",
  ENETUNREACH: "its engine's host can't be reached",
  ETIMEDOUT: "its engine's host does not answer",
  EMFILE: 'the server has too many open files',
};

/** Why the engine could not be spoken to, in words without addresses or paths. */
export function whyUnreachable(error: unknown): string {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  const known = reasons[code];
  if (known !== undefined) return known;
  if (/^(?:ERR_TLS|ERR_SSL|CERT_|UNABLE_|SELF_SIGNED|DEPTH_ZERO|EPROTO)/.test(code)) {
    return `the TLS connection to its engine failed (${code}); look at the certificates that DOCKER_CERT_PATH names`;
  }
  return code === '' ? 'its engine could not be spoken to' : `its engine could not be spoken to (${code})`;
}

/** Did the engine itself say what is wrong, rather than something on the way to it? */
export function hasMessage(error: unknown): boolean {
  return statusOf(error) !== null && error instanceof Error && 'json' in error && typeof error.json === 'object' && error.json !== null && 'message' in error.json;
}

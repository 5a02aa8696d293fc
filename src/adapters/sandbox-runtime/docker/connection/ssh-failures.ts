import { Failure } from '../../../../domain/failure.ts';
import { misconfigured } from './surroundings.ts';

/** The code that `ssh` exits with where it itself failed; any other is that of the command on the other host. */
const sshFailed = 255;
const commandNotFound = 127;

const tryIt = 'try it as the user that the server runs as: ssh with the user and host of SKEP_DOCKER_HOST, and then docker version';

/** What somebody has to change, by what `ssh` says. */
const mistakes: readonly (readonly [RegExp, string])[] = [
  [/REMOTE HOST IDENTIFICATION HAS CHANGED/, "the key of its engine's host is another than the one in ssh's known_hosts; find out why, and correct known_hosts"],
  [/Host key verification failed|host key is known/i, "the key of its engine's host is not in ssh's known_hosts; compare it, and add it for the user that the server runs as"],
  [/Permission denied|Too many authentication failures/i, `its engine's host refused ssh's keys; ${tryIt}`],
  [/UNPROTECTED PRIVATE KEY FILE|bad permissions|Bad owner or permissions/i, "ssh does not use its key or its configuration, since other users may read or change them; correct their permissions"],
  [/Could not resolve hostname/i, "its engine's host is not known; correct SKEP_DOCKER_HOST or DOCKER_HOST"],
];

/** What may pass by itself. */
const troubles: readonly (readonly [RegExp, string])[] = [
  [/Connection refused/i, "ssh is refused by its engine's host; start the SSH server there, or correct the port"],
  [/No route to host|Network is unreachable/i, "its engine's host can't be reached"],
  [/timed out/i, "its engine's host does not answer"],
];

/** Has `ssh` been let in, by what it says when it is asked to be verbose? */
export function isAuthenticated(said: string): boolean {
  return /^Authenticated to /m.test(said);
}

/**
 * Why `ssh` ended before the engine answered, in words without addresses or paths; null where it ended as if all were well.
 * `said` is its standard error.
 */
export function sshFailure(code: number | null, said: string): Failure<'runtime_unavailable'> | null {
  if (code === 0) return null;
  if (code === commandNotFound) return misconfigured("the host of its engine has no docker command for ssh's user; install Docker's client there, or correct that user's PATH");
  if (code !== sshFailed) return unavailable(`its engine does not answer on its host; start Docker there, and let ssh's user use its socket; ${tryIt}`);
  const mistake = mistakes.find(([pattern]) => pattern.test(said));
  if (mistake !== undefined) return misconfigured(mistake[1]);
  return unavailable(troubles.find(([pattern]) => pattern.test(said))?.[1] ?? `ssh lost its engine's host, or does not get there; ${tryIt}`);
}

/** Why there is no `ssh` at all. */
export function withoutSsh(cause: Error): Failure<'runtime_unavailable'> {
  const absent = 'code' in cause && cause.code === 'ENOENT';
  return absent ? misconfigured('this machine has no ssh command; install an OpenSSH client', cause) : unavailable('ssh could not be started', cause);
}

function unavailable(reason: string, cause?: Error): Failure<'runtime_unavailable'> {
  return new Failure('runtime_unavailable', { runtime: 'docker', reason, retryAfterSeconds: 5 }, { cause });
}

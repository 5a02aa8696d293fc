import type { Reason } from '../../../domain/reason.ts';

/** Derives from the engine's message why it could not create or start a container. */
export function launchRefusal(message: string): Reason {
  const missing = /exec: "([^"]*)": (executable file not found|stat [^:]*: no such file|permission denied|is a directory)/.exec(message);
  if (missing !== null) {
    const isThere = /permission|directory/.test(missing[2] ?? '');
    return { code: isThere ? 'command_not_executable' : 'command_not_found', command: missing[1] ?? '' };
  }
  const user = /unable to find (user|group) ([^:]+)/.exec(message);
  if (user !== null) return { code: 'user_not_found', kind: user[1] === 'group' ? 'group' : 'user', name: user[2] ?? '' };
  return { code: 'launch_refused', message: shorten(message) };
}

const maxCharacters = 300;

/** The engine's messages have no length limit, and contain paths of its host. */
export function shorten(message: string): string {
  const hostPath = /\/(?:var|run|etc|home|root|usr|tmp|mnt|opt|srv|proc|sys)\/[^\s:"',)]+/g;
  const line = message.replaceAll(/\s+/g, ' ').trim().replaceAll(hostPath, '...');
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters)}...` : line;
}

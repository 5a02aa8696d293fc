import { constants } from 'node:os';
import { explained, type Reason } from '../../../domain/reason.ts';

const asReason = (reason: Reason): Reason => reason;

/** Every reason of this runtime for a state, a refused spec or a line of progress. */
export const reasons = {
  invalidId: asReason({ code: 'invalid_id' }),
  foreignContainer: explained('the engine has a container of its name that is not of this deployment; remove or rename that container'),
  foreignNetwork: (name: string) => explained(`the engine has a network ${name} that is not Skep's; remove it`),
  noNetworkAddresses: explained(
    'the engine has no addresses left for another network; ' +
      'remove networks that nobody uses, or give it more with its setting default-address-pools',
  ),

  creating: asReason({ code: 'creating_sandbox' }),
  startingCommand: asReason({ code: 'starting_command' }),
  removedWhileMade: explained('its container was removed while it was made'),
  invalidDockerOptions: explained('the docker part of its spec does not have a form that Skep knows; correct the spec'),
  noCommand: (image: string) => explained(`neither its spec nor the image ${image} has a command`),
  secretsWithoutCommand: explained('the spec has secrets, which only a command of its own gets; write the command into the spec'),
  noOciRuntime: (name: string, available: readonly string[]) => asReason({ code: 'isolation_unavailable', name, available }),

  noImage: asReason({ code: 'image_not_named' }),
  invalidImage: (image: string) => asReason({ code: 'image_name_invalid', image }),
  imageNotOnEngine: (image: string) => explained(`the image ${image} is not on the engine, and has to be pulled first`),
  pullTimedOut: (image: string, limitMs: number, registry: string) => asReason({ code: 'image_pull_timeout', image, limitMs, registry }),
  loginNeeded: (image: string, registry: string) => asReason({ code: 'image_login_required', image, registry }),
  loginRefused: (image: string, registry: string) => asReason({ code: 'image_login_refused', image, registry }),
  noSuchImage: (image: string, registry: string) => asReason({ code: 'image_not_found', image, registry }),
  pullFailed: (image: string, registry: string, message: string) =>
    asReason({ code: 'image_pull_failed', image, registry, message: shorten(message) }),

  exited: (exitCode: number, program: string) => asReason({ code: 'process_exited', exitCode, signal: signalOf(exitCode), program }),
  outOfMemory: (exitCode: number) => asReason({ code: 'out_of_memory', exitCode, signal: signalOf(exitCode) }),
  beingRemoved: asReason({ code: 'being_removed' }),
  notRunnable: (message: string) => reasonOfRefusal(message),
} as const;

const maxCharacters = 300;
const signals = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

function signalOf(exitCode: number): string | null {
  return exitCode > 128 ? (signals.get(exitCode - 128) ?? null) : null;
}

/** Returns why the engine could not make or start a container, from its message. */
function reasonOfRefusal(message: string): Reason {
  const missing = /exec: "([^"]*)": (executable file not found|stat [^:]*: no such file|permission denied|is a directory)/.exec(message);
  if (missing !== null) {
    const isThere = /permission|directory/.test(missing[2] ?? '');
    return { code: isThere ? 'command_not_executable' : 'command_not_found', command: missing[1] ?? '' };
  }
  const user = /unable to find (user|group) ([^:]+)/.exec(message);
  if (user !== null) return { code: 'user_not_found', kind: user[1] === 'group' ? 'group' : 'user', name: user[2] ?? '' };
  return { code: 'launch_refused', message: shorten(message) };
}

/** The engine's messages have no limit, and hold paths of its host. */
export function shorten(message: string): string {
  const hostPath = /\/(?:var|run|etc|home|root|usr|tmp|mnt|opt|srv|proc|sys)\/[^\s:"',)]+/g;
  const line = message.replaceAll(/\s+/g, ' ').trim().replaceAll(hostPath, '...');
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters)}...` : line;
}

import { constants } from 'node:os';

/** Every text that this runtime puts into an `ObservedSandbox`, a `Provision` or a line of progress, under the name of its reason. */
export const details = {
  invalidId: 'its id is not a DNS label',
  foreignContainer: 'the engine has a container of its name that is not of this deployment; remove or rename that',
  foreignNetwork: (name: string) => `the engine has a network ${name} that is not Skep's; remove it`,
  noNetworkAddresses:
    'the engine has no addresses left for another network; ' +
    'remove networks that nobody uses, or give it more with its setting default-address-pools',

  makingContainer: 'making its container',
  startingContainer: 'starting its container',
  removedWhileMade: 'its container was removed while it was made',
  invalidDockerOptions: 'the docker part of its spec is not of the form that Skep knows; correct the spec',
  noCommand: (image: string) => `neither its spec nor the image ${image} has a command`,
  noOciRuntime: (name: string, others: readonly string[]) =>
    `the engine has no OCI runtime ${[name, ...(others.length === 0 ? [] : [`only ${others.join(', ')}`])].join(', ')}; ` +
    'install it there, or change the spec',

  noImage: 'its spec names no image',
  invalidImage: (image: string) => `${JSON.stringify(image)} is no name of an image; correct the spec's image`,
  imageNotOnEngine: (image: string) => `the image ${image} is not on the engine, and has to be pulled first`,
  pulling: (image: string, progress: string) => `pulling ${image}${progress}`,
  pullTimedOut: (image: string, seconds: number, registry: string) =>
    `the image ${image} was not pulled within ${seconds} s; pull it ahead, or look at the way from the engine to ${registry}`,
  loginNeeded: (image: string, registry: string, login: string) =>
    `the image ${image} does not exist, or ${registry} wants a login: ` +
    `correct the spec's image, or log in with docker login ${login}`.trim(),
  loginRefused: (image: string, registry: string) =>
    `the image ${image} does not exist, or ${registry} refuses the login of Docker's configuration: ` +
    "correct the spec's image, or log in again",
  noSuchImage: (image: string, registry: string) =>
    `${registry} has no image ${image}; correct the spec's image, or build or load it on the engine`,
  pullFailed: (image: string, registry: string, message: string) =>
    `the image ${image} could not be pulled from ${registry}; ` +
    `correct the spec's image, build or load it on the engine, or let the engine reach ${registry}: ${shorten(message)}`,

  exited: (code: number, program: string) => describeExit(code, program),
  endedFromOutside: (code: number, program: string) => `was ended from outside and ${describeExit(code, program)}`,
  outOfMemory: (code: number, program: string) => `ran out of its memory and ${describeExit(code, program)}`,
  beingRemoved: 'the engine is removing it, or failed to',
  notRunnable: (message: string) => describeRefusal(message),
} as const;

const maxCharacters = 300;
const signals = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** How a command ended. */
function describeExit(code: number, program: string): string {
  const signal = code > 128 ? signals.get(code - 128) : undefined;
  if (signal !== undefined) return `exited with code ${code} (${signal})`;
  if (code === 127) return `exited with code 127: the command, or one that it runs, was not found: ${program}`;
  if (code === 126) return `exited with code 126: the command, or one that it runs, is not executable: ${program}`;
  return `exited with code ${code}`;
}

/** Why the engine could not make or start a container, from its message. */
function describeRefusal(message: string): string {
  const missing = /exec: "([^"]*)": (executable file not found|stat [^:]*: no such file|permission denied|is a directory)/.exec(message);
  if (missing !== null) {
    const isThere = /permission|directory/.test(missing[2] ?? '');
    return `${isThere ? 'command not executable' : 'command not found'}: ${missing[1]}`;
  }
  const user = /unable to find (user|group) ([^:]+)/.exec(message);
  if (user !== null) return `its image has no ${user[1]} ${user[2]}`;
  return `the engine could not run it: ${shorten(message)}`;
}

/** The engine's messages have no limit, and hold paths of its host. */
function shorten(message: string): string {
  const hostPath = /\/(?:var|run|etc|home|root|usr|tmp|mnt|opt|srv|proc|sys)\/[^\s:"',)]+/g;
  const line = message.replaceAll(/\s+/g, ' ').trim().replaceAll(hostPath, '...');
  return line.length > maxCharacters ? `${line.slice(0, maxCharacters)}...` : line;
}

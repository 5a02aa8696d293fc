import type Docker from 'dockerode';
import type { Environment } from './engine-client.ts';

export interface DockerRuntimeOptions {
  /**
   * A lower-case DNS label. It is in the names and labels of this deployment's objects on the engine. Objects without it are never touched.
   */
  readonly deployment: string;
  /** The engine: `unix:///path`, `tcp://host:port`, `ssh://user@host`. Default: from Docker's variables and configuration. */
  readonly host?: string;
  /** A ready client instead of `host`. The runtime does not close it. */
  readonly docker?: Docker;
  /** The address of the engine's host that exposed ports are bound to. Default: `127.0.0.1`. */
  readonly publishAddress?: string;
  /** The host in exposed URLs. Default: a remote engine's host, otherwise the publish address. */
  readonly urlHost?: string;
  /**
   * Whether Skep adds rules to the firewall of the engine's machine, so that isolated sandboxes reach neither the machine's own services
   * nor metadata services. Default: true.
   */
  readonly firewall?: boolean;
  /** The folder of Docker's `config.json` with the registry logins. Default: `DOCKER_CONFIG`, or `~/.docker`. */
  readonly configDir?: string;
  /** The time limit of a call to the engine, in milliseconds. Default: 60,000. */
  readonly callTimeoutMs?: number;
  /** The time limit for pulling an image, in milliseconds. Default: half an hour. */
  readonly pullTimeoutMs?: number;
  /** How long a sandbox's processes may take to end after the stop signal, in milliseconds, rounded up to seconds. Default: 10,000. */
  readonly stopGraceMs?: number;
  /** How often the known states are compared with a list, in addition to the engine's events, in milliseconds. Default: 60,000. */
  readonly compareMs?: number;
  /** The minimum time between two progress reports of a pull, in milliseconds. Default: 500. */
  readonly progressMs?: number;
  /** The environment with Docker's variables. Default: this process's own. */
  readonly env?: Environment;
}

/** Returns the address at which this machine reaches published ports. */
export function localHost(publishAddress: string): string {
  return ['0.0.0.0', '::', ''].includes(publishAddress) ? '127.0.0.1' : publishAddress;
}

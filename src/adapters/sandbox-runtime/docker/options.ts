import type Docker from 'dockerode';
import type { Environment } from './connection/surroundings.ts';

export interface DockerRuntimeOptions {
  /**
   * A lower-case DNS label, which names and marks what belongs to this deployment on its engine. What bears another one, or none,
   * is never touched.
   */
  readonly deployment: string;
  /** The engine: `unix:///path`, `tcp://host:port`, `ssh://user@host`. Otherwise Docker's own variables and configuration tell. */
  readonly host?: string;
  /** A ready-made client, instead. It stays its maker's to close. */
  readonly docker?: Docker;
  /** The address of the engine's host that exposed ports are bound to. Default: `127.0.0.1`. */
  readonly publishAddress?: string;
  /** The host in exposed URLs. Default: the publish address; a remote engine's host. */
  readonly urlHost?: string;
  /** The folder of Docker's `config.json`, which has the logins for registries. Default: `DOCKER_CONFIG`, or `~/.docker`. */
  readonly configDir?: string;
  /** How long a call on the engine may take. Default: 60,000. */
  readonly callTimeoutMs?: number;
  /** How long pulling an image may take. Default: half an hour. */
  readonly pullTimeoutMs?: number;
  /** How long a sandbox's processes may take to end when they are asked to, in whole seconds. Default: 10,000. */
  readonly stopGraceMs?: number;
  /** How often what was told of sandboxes is compared with what is, besides following the engine's events. Default: 60,000. */
  readonly compareMs?: number;
  /** The least time between two lines of progress of a pull. Default: 500. */
  readonly progressMs?: number;
  /** Where Docker's variables are. Default: this process's environment. */
  readonly env?: Environment;
}

import { Agent } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { inspect } from 'node:util';
import Docker from 'dockerode';
import type { Endpoint } from './engine-address.ts';
import { SshAgent } from './ssh-connection.ts';

/** Proxies on the way to the engine may drop a connection that is idle for longer. */
const idleMs = 30_000;

export interface Client {
  readonly docker: Docker;
  /** Ends its idle connections. */
  close(): void;
}

/** dockerode fills whatever is not there from Docker's variables, which are part of the endpoint already. */
const names = ['host', 'port', 'socketPath', 'username', 'ca', 'cert', 'key'];
const unset = Object.fromEntries(names.map((name) => [name, undefined]));

/** Returns the client of an engine. Its connections are kept for the next call, and there is no limit on how many are open. */
export function createClient(endpoint: Endpoint): Client {
  const agent = agentOf(endpoint);
  // The client describes each request in full for a log that nobody reads. With all of the agent's sockets, that takes longer than the
  // request.
  Object.defineProperty(agent, inspect.custom, { value: () => agent.constructor.name });
  const docker = new Docker(Object.assign({ ...unset, protocol: 'http' as const, agent }, addressOf(endpoint)));
  return { docker, close: () => agent.destroy() };
}

function agentOf(endpoint: Endpoint): Agent {
  const options = { keepAlive: true, timeout: idleMs };
  if (endpoint.kind === 'ssh') return new SshAgent(endpoint, options);
  if (endpoint.kind === 'tcp' && endpoint.tls !== null) return new SecureAgent({ ...options, ...endpoint.tls });
  return new Agent(options);
}

function addressOf(endpoint: Endpoint): Docker.DockerOptions {
  switch (endpoint.kind) {
    case 'socket':
      return { socketPath: endpoint.path };
    case 'tcp': {
      const { host, port, tls } = endpoint;
      return { host: host.includes(':') ? `[${host}]` : host, port, protocol: tls === null ? 'http' : 'https', ...tls };
    }
    case 'ssh':
      // The agent connects by itself; the name is only for the header.
      return { host: 'docker.invalid', port: 80 };
  }
}

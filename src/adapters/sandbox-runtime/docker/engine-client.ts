import { Agent } from 'node:http';
import { Agent as SecureAgent } from 'node:https';
import { inspect } from 'node:util';
import Docker from 'dockerode';
import type { Endpoint } from './engine-address.ts';
import { SshAgent } from './ssh-connection.ts';

const idleMs = 30_000;

export interface Client {
  readonly docker: Docker;
  /** Ends its idle connections. */
  close(): void;
}

/** The client of an engine. Its connections are kept for the next call, and there is no limit on how many are open. */
export function createClient(endpoint: Endpoint): Client {
  const agent = terse(agentOf(endpoint));
  // dockerode fills whatever is not there from Docker's variables, which have had their say.
  const bare = {
    host: undefined,
    port: undefined,
    socketPath: undefined,
    username: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    protocol: 'http' as const,
  };
  const docker = new Docker(Object.assign(bare, { agent }, addressOf(endpoint)));
  return { docker, close: () => agent.destroy() };
}

function agentOf(endpoint: Endpoint): Agent {
  // What is between here and the engine may forget a connection that rests for longer.
  const options = { keepAlive: true, timeout: idleMs };
  if (endpoint.kind === 'ssh') return new SshAgent(endpoint, options);
  if (endpoint.kind === 'tcp' && endpoint.tls !== null) return new SecureAgent({ ...options, ...endpoint.tls });
  return new Agent(options);
}

/** The client describes each request in full for a log that nobody reads; with all of its agent's sockets that takes longer than the request. */
function terse(agent: Agent): Agent {
  return Object.defineProperty(agent, inspect.custom, { value: () => agent.constructor.name });
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
      // The agent knows the way; the name is only for the header.
      return { host: 'docker.invalid', port: 80 };
  }
}

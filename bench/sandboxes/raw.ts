import Docker from 'dockerode';
import { createNetworkProbe } from '../../src/adapters/readiness-probe/network-probe.ts';
import { createEngine } from '../../src/adapters/sandbox-runtime/docker/engine.ts';
import { labels } from '../../src/adapters/sandbox-runtime/docker/labels.ts';
import { containerConfig } from '../../src/adapters/sandbox-runtime/docker/start-container.ts';
import { Networks } from '../../src/adapters/sandbox-runtime/docker/networks.ts';
import { type ReadinessRule, sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { clearUp } from '../engine.ts';

export const image = 'skep-test/tiny';
export const port = 8000;
export const command = ['httpd', '-f', '-p', String(port), '-h', '/etc'];
/** The readiness rule of the server. */
export const ready = { http: '/passwd', port };
const readiness: ReadinessRule = { probe: { kind: 'http', port, path: '/passwd' }, withinMs: 60_000 };

const publishAddress = '127.0.0.1';
const deployment = 'bench-raw';
const spec = sandboxSpec({ id: 'web', image, command, ports: [{ name: 'WEB', port }], ready: readiness });

/**
 * The peer: the raw Engine API with the same probe. It creates the same containers as Skep, in the same kind of network, so the
 * difference is Skep itself and not the work of the engine.
 */
export function createRawEngine() {
  const docker = new Docker();
  const probe = createNetworkProbe();
  const networks = new Networks(createEngine({ docker, deployment, callTimeoutMs: 60_000, closed: neverAborts }));
  let made = 0;
  const answers = async (hostPort: number): Promise<void> => {
    const urls = [{ name: 'WEB', url: `http://${publishAddress}:${hostPort}`, port }];
    await probe.untilReady(readiness, urls, AbortSignal.timeout(readiness.withinMs));
  };
  const run = async (config: Docker.ContainerCreateOptions): Promise<Docker.Container> => {
    const container = await docker.createContainer(config);
    await container.start();
    const { NetworkSettings } = await container.inspect();
    await answers(Number(NetworkSettings.Ports[`${port}/tcp`]?.[0]?.HostPort));
    return container;
  };
  return {
    docker,
    answers,
    /** Creates and starts a container, and waits for the first response to the probe. */
    async start(): Promise<Docker.Container> {
      made += 1;
      const launch = { id: `raw-${process.pid}-${made}`, spec, sessionApiKey: 'none' };
      return run(containerConfig({ deployment, launch, image, network: await networks.choose('isolated'), publishAddress }));
    },
    /** The same for a container without isolation, on the engine's default bridge. */
    startPlain: () =>
      run({
        Image: image,
        Cmd: command,
        Labels: { [labels.deployment]: deployment },
        ExposedPorts: { [`${port}/tcp`]: {} },
        HostConfig: { Init: true, PortBindings: { [`${port}/tcp`]: [{ HostIp: publishAddress, HostPort: '' }] } },
      }),
    /** Removes all containers of this peer. */
    clear: () => clearUp(deployment),
  };
}

export type RawEngine = ReturnType<typeof createRawEngine>;

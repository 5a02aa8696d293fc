import Docker from 'dockerode';
import { createNetworkProbe } from '../../src/adapters/network-probe/index.ts';
import type { ReadinessRule } from '../../src/domain/sandbox-spec.ts';

export const image = 'skep-test/tiny';
export const port = 8000;
export const command = ['httpd', '-f', '-p', String(port), '-h', '/etc'];
export const ready: ReadinessRule = { probe: { kind: 'http', port, path: '/passwd' }, withinMs: 60_000 };

const label = 'skep-bench';

/** The peer: the Engine API with nothing around it, and the same probe. */
export function createRawEngine() {
  const docker = new Docker();
  const probe = createNetworkProbe();
  const answers = async (hostPort: number): Promise<void> => {
    const urls = [{ name: 'WEB', url: `http://127.0.0.1:${hostPort}`, port }];
    await probe.untilReady(ready, urls, AbortSignal.timeout(ready.withinMs));
  };
  return {
    docker,
    answers,
    /** Create, start, and the first answer to the probe. */
    async start(): Promise<Docker.Container> {
      const container = await docker.createContainer({
        Image: image,
        Cmd: command,
        Labels: { [label]: '' },
        ExposedPorts: { [`${port}/tcp`]: {} },
        HostConfig: { Init: true, PortBindings: { [`${port}/tcp`]: [{ HostIp: '127.0.0.1', HostPort: '' }] } },
      });
      await container.start();
      const { NetworkSettings } = await container.inspect();
      await answers(Number(NetworkSettings.Ports[`${port}/tcp`]?.[0]?.HostPort));
      return container;
    },
    /** Removes all that was started here. */
    async clear(): Promise<void> {
      const found = await docker.listContainers({ all: true, filters: { label: [label] } });
      for (const { Id } of found) await docker.getContainer(Id).remove({ force: true, v: true });
    },
  };
}

export type RawEngine = ReturnType<typeof createRawEngine>;

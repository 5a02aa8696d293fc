import { z } from 'zod';
import type { SandboxPort } from '../../../../domain/sandbox-spec.ts';
import type { ExposedUrl } from '../../../../domain/sandbox.ts';
import { labels } from '../identity.ts';

const Ports = z.array(z.object({ name: z.string(), port: z.number() }));

/** A port of a container, and the one of the host that leads there. */
export interface Publication {
  readonly port: number;
  readonly hostPort: number;
}

/** Where the ports of the spec, which a container's label holds, can be reached. */
export function exposedUrls(found: Readonly<Record<string, string>>, publications: readonly Publication[], urlHost: string): ExposedUrl[] {
  const host = urlHost.includes(':') ? `[${urlHost}]` : urlHost;
  return portsOf(found).flatMap(({ name, port }) => {
    const hostPort = publications.find((one) => one.port === port)?.hostPort;
    return hostPort === undefined ? [] : [{ name, url: `http://${host}:${hostPort}`, port }];
  });
}

function portsOf(found: Readonly<Record<string, string>>): readonly SandboxPort[] {
  try {
    return Ports.parse(JSON.parse(found[labels.ports] ?? '[]'));
  } catch {
    return [];
  }
}

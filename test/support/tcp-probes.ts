import { readFile } from 'node:fs/promises';

/** Only Linux shows the timers of connections. */
export const showsProbes = process.platform === 'linux';

/** Returns after how many seconds the system probes the server's end of an idle connection with this client. Null if it does not. */
export async function secondsUntilProbe(clientPort: number | undefined): Promise<number | null> {
  for (const line of (await readFile('/proc/net/tcp', 'latin1')).split('\n')) {
    const [, , remote = '', , , timer = ''] = line.trim().split(/\s+/);
    const [kind, ticks = ''] = timer.split(':');
    if (Number.parseInt(remote.split(':')[1] ?? '', 16) === clientPort && kind === '02') return Number.parseInt(ticks, 16) / 100;
  }
  return null;
}

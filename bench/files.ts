import { execFile } from 'node:child_process';
import { createHash, randomFillSync } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { copy } from '../src/adapters/cli/copy.ts';
import { createClient, type SkepClient } from '../src/client/index.ts';
import { neverAborts } from '../src/ports/abort-signals.ts';
import { startServer } from '../test/support/server.ts';
import { deploymentOf } from '../test/support/deployment.ts';
import { createClient as createJsonClient, object } from '../test/support/client.ts';
import { until } from '../test/support/until.ts';
import { clearUp } from './engine.ts';
import { boundedFigure, inMs, median, timed, type Bound, type Figure } from './figure.ts';

const run = promisify(execFile);
const key = 'a-static-key-for-the-benchmark';
const gibibyte = 2 ** 30;
const smallFiles = 1000;
const rounds = { large: 5, small: 9 };

interface Place {
  readonly client: SkepClient;
  readonly sandbox: string;
  readonly container: string;
  readonly folder: string;
}

/** Measures copying files into a sandbox and out of it against `docker cp` with the same container, in turn. */
export async function* benchFiles(): AsyncGenerator<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-bench-files-'));
  const spec = { id: 'debian', image: 'skep-test/debian', command: ['sleep', '100000'] };
  const server = await startServer({ config: { specs: [spec] }, env: { SKEP_API_KEY: key, SKEP_SANDBOX_RUNTIME: 'docker', SKEP_PROXY_PORT: 'off' } });
  const memory = followMemory(server.process.pid ?? 0);
  try {
    const call = createJsonClient(server.url, key);
    const sandbox = String(object(await call('POST', '/api/v1/sandboxes', {}))['id']);
    await until(() => call('GET', `/api/v1/sandboxes/${sandbox}`), (answer) => object(answer)['status'] === 'RUNNING', 60_000);
    const [found] = await new Docker().listContainers({ filters: { label: [`skep.sandbox=${sandbox}`] } });
    const place = { client: createClient({ url: server.url, key }), sandbox, container: found?.Id ?? '', folder };
    await makeFiles(folder);
    const before = await memory.peak();
    yield* large(place);
    const megabytes = (await memory.peak() - before) / 2 ** 20;
    yield {
      name: 'memory of the server while 1 GiB passes', measured: `${megabytes.toFixed(0)} MiB more`, reference: '', ratio: null, bound: null, ok: true,
    };
    yield* small(place);
  } finally {
    memory.stop();
    await server.stop();
    await clearUp(deploymentOf(server.dataDir) ?? 'none');
    await rm(server.dataDir, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeFiles(folder: string): Promise<void> {
  const part = Buffer.alloc(16 << 20);
  await using file = await open(join(folder, 'large'), 'w');
  for (let at = 0; at < gibibyte; at += part.length) await file.writeFile(randomFillSync(part));
  for (let index = 0; index < smallFiles; index += 1) {
    const directory = join(folder, 'small', String(index % 20));
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, `file-${index}`), randomFillSync(Buffer.alloc(4096)));
  }
}

async function* large({ client, sandbox, container, folder }: Place): AsyncGenerator<Figure> {
  const [file, back] = [join(folder, 'large'), join(folder, 'back')];
  const times = { up: [] as number[], dockerUp: [] as number[], down: [] as number[], dockerDown: [] as number[] };
  for (let round = 0; round < rounds.large; round += 1) {
    times.dockerUp.push(await timed(() => run('docker', ['cp', file, `${container}:/workspace/docker`])));
    times.up.push(await timed(() => copy(client, file, `${sandbox}:/workspace/skep`, neverAborts)));
    times.dockerDown.push(await timed(() => run('docker', ['cp', `${container}:/workspace/docker`, back])));
    await rm(back);
    times.down.push(await timed(() => copy(client, `${sandbox}:/workspace/skep`, back, neverAborts)));
    if (round === 0 && await digestOf(back) !== await digestOf(file)) throw new Error('the file came back changed');
    await rm(back);
    await run('docker', ['exec', container, 'rm', '/workspace/docker', '/workspace/skep']);
  }
  const note = `${rounds.large} rounds, in turn`;
  yield speed('upload of 1 GiB', times.up, times.dockerUp, note);
  yield speed('download of 1 GiB', times.down, times.dockerDown, note);
}

const rate = (values: readonly number[]): number => gibibyte / 1e3 / median(values);

function speed(name: string, times: readonly number[], docker: readonly number[], note: string): Figure {
  const text = (values: readonly number[]): string => `${rate(values).toFixed(0)} MB/s`;
  const bound: Bound = { atLeast: 0.8 };
  return boundedFigure({ name, measured: text(times), reference: `${text(docker)}: docker cp`, note }, rate(times) / rate(docker), bound);
}

async function* small({ client, sandbox, container, folder }: Place): AsyncGenerator<Figure> {
  const [tree, back] = [join(folder, 'small'), join(folder, 'small-back')];
  const times = { up: [] as number[], dockerUp: [] as number[], down: [] as number[], dockerDown: [] as number[] };
  for (let round = 0; round < rounds.small; round += 1) {
    times.dockerUp.push(await timed(() => run('docker', ['cp', tree, `${container}:/workspace/docker-${round}`])));
    times.up.push(await timed(() => copy(client, tree, `${sandbox}:/workspace/skep-${round}`, neverAborts)));
    times.dockerDown.push(await timed(() => run('docker', ['cp', `${container}:/workspace/docker-${round}`, back])));
    await rm(back, { recursive: true });
    times.down.push(await timed(() => copy(client, `${sandbox}:/workspace/skep-${round}`, back, neverAborts)));
    await rm(back, { recursive: true });
  }
  const note = `${rounds.small} rounds, in turn; without the start of the program skep`;
  const figure = (name: string, skep: readonly number[], docker: readonly number[]): Figure =>
    boundedFigure(
      { name, measured: inMs(median(skep)), reference: `${inMs(median(docker))}: docker cp`, note }, median(skep) / median(docker), { atMost: 1.2 },
    );
  yield figure(`upload of ${smallFiles} small files`, times.up, times.dockerUp);
  yield figure(`download of ${smallFiles} small files`, times.down, times.dockerDown);
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** Samples the memory of a process, as the kernel counts it. */
function followMemory(pid: number): { peak(): Promise<number>; stop(): void } {
  let peak = 0;
  const look = async (): Promise<void> => {
    const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(pid)]).catch(() => ({ stdout: '0' }));
    peak = Math.max(peak, Number(stdout) * 1024);
  };
  const timer = setInterval(() => void look(), 250);
  return {
    async peak() {
      await look();
      return peak;
    },
    stop: () => clearInterval(timer),
  };
}

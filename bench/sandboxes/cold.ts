import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { GenericContainer, Wait } from 'testcontainers';
import { boundedFigure, type Figure, percentile, spread, timed } from '../figure.ts';
import { openDeployment } from './deployment.ts';
import { command, createRawEngine, image, port, type RawEngine } from './raw.ts';

const rounds = 15;
const run = promisify(execFile);
// Testcontainers' reaper is an image that may be missing here. This file stops everything that it starts.
process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';

/** Measures a cold start until RUNNING against the raw Engine API and against testcontainers, in turn. */
export async function* benchCold(): AsyncGenerator<Figure> {
  const raw = createRawEngine();
  await using deployment = await openDeployment();
  const times = { skep: [] as number[], raw: [] as number[], plain: [] as number[], docker: [] as number[], testcontainers: [] as number[] };
  try {
    await raw.start();
    await deployment.running();
    for (let round = 0; round < rounds; round += 1) {
      times.skep.push(await timed(() => deployment.running()));
      times.raw.push(await timed(() => raw.start()));
      times.plain.push(await timed(() => raw.startPlain()));
      times.docker.push(await timed(() => dockerRun(raw)));
      times.testcontainers.push(await withTestcontainers());
    }
  } finally {
    await raw.clear();
  }
  const note = `${rounds} rounds, in turn`;
  const texts = { name: 'start to RUNNING, cold', measured: spread(times.skep), reference: `${spread(times.raw)}: the raw API, for the same container`, note };
  const beside = (name: string, values: readonly number[]): Figure => ({
    name: `start to RUNNING, cold, beside ${name}`,
    measured: spread(times.skep),
    reference: spread(values),
    ratio: percentile(times.skep, 50) / percentile(values, 50),
    bound: null,
    ok: true,
    note: 'which neither hardens nor keeps a record',
  });
  yield boundedFigure(texts, percentile(times.skep, 50) / percentile(times.raw, 50), { atMost: 1.15 });
  yield beside('the raw API for a container with no isolation', times.plain);
  yield beside('docker run and the same probe', times.docker);
  yield beside('testcontainers and its HTTP wait', times.testcontainers);
}

async function dockerRun(raw: RawEngine): Promise<void> {
  const { stdout } = await run('docker', ['run', '-d', '--init', '--label', 'skep-bench', '-p', `127.0.0.1::${port}`, image, ...command]);
  const { stdout: address } = await run('docker', ['port', stdout.trim(), `${port}/tcp`]);
  await raw.answers(Number(address.trim().split(':').at(-1)));
}

async function withTestcontainers(): Promise<number> {
  const begun = performance.now();
  const container = await new GenericContainer(image)
    .withCommand(command)
    .withExposedPorts(port)
    .withWaitStrategy(Wait.forHttp('/passwd', port))
    .start();
  const ms = performance.now() - begun;
  await container.stop();
  return ms;
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, type Figure } from './figure.ts';

const executable = join(import.meta.dirname, '../src/composition/bin.ts');
const rounds = 7;

/** The peer: what Node and Express need for themselves. */
const bare = `
const { default: express } = await import('express');
const server = express().get('/health', (_, response) => response.json({ status: 'ok' })).listen(0, '127.0.0.1', () => {
  console.log('listens on http://127.0.0.1:' + server.address().port + ' Try:');
});
`;

interface Start {
  readonly ms: number;
  readonly residentMiB: number;
}

/** From the start of the process to the first 200 of its health, and the memory that is resident then. */
export async function benchStart(): Promise<Figure[]> {
  const skep: Start[] = [];
  const peer: Start[] = [];
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  try {
    for (let round = 0; round < rounds; round += 1) {
      skep.push(await start([executable, 'serve'], { SKEP_PORT: '0', SKEP_DATA_DIR: dataDir, SKEP_LOG_LEVEL: 'silent' }));
      peer.push(await start(['--input-type=module', '-e', bare], {}));
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
  const dominant = 'of it, the largest part is loading modules: zod, express and their schemas';
  return [
    figure('start to ready', 'ms', skep.map(({ ms }) => ms), peer.map(({ ms }) => ms), dominant),
    figure('resident memory when idle', 'MiB', skep.map(({ residentMiB }) => residentMiB), peer.map(({ residentMiB }) => residentMiB), 'of it, most is Node itself'),
  ];
}

function figure(name: string, unit: string, measured: readonly number[], reference: readonly number[], note: string): Figure {
  const [ours, theirs] = [median(measured), median(reference)];
  const text = (value: number): string => `${value.toFixed(0)} ${unit}`;
  return { name: `${name}, beside bare Express`, measured: text(ours), reference: text(theirs), ratio: ours / theirs, bound: null, ok: true, note };
}

async function start(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Start> {
  const begun = performance.now();
  const child = spawn(process.execPath, args, { cwd: join(import.meta.dirname, '..'), env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  const { promise, resolve } = Promise.withResolvers<string>();
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const url = /listens on (\S+)/.exec(text)?.[1];
    if (url !== undefined) resolve(url);
  });
  const url = await promise;
  const response = await fetch(`${url}/health`);
  if (response.status !== 200) throw new Error(`health answered ${response.status}`);
  await response.body?.cancel();
  const ms = performance.now() - begun;
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  const residentMiB = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  return { ms, residentMiB };
}

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Figure, median } from './figure.ts';

const project = join(import.meta.dirname, '..');
const executable = join(project, 'src/composition/executable/main.ts');
const rounds = 7;

/** The peer: what Node and Express need for themselves. */
const bareExpress = `
const { default: express } = await import('express');
const server = express().get('/health', (_, response) => response.json({ status: 'ok' })).listen(0, '127.0.0.1', () => {
  console.log('listens on http://127.0.0.1:' + server.address().port);
});
`;

/** Loads the modules of a start, and does nothing with them. */
const modulesOnly = `
await Promise.all(['composition/executable/serve', 'adapters/http/index', 'adapters/store/sqlite/index', 'adapters/git-provider/local/index',
  'adapters/sandbox-runtime/process/index', 'adapters/readiness-probe/network-probe', 'adapters/auth/api-keys/index', 'adapters/clock/system-clock',
  'adapters/random/system-random']
  .map((name) => import(${JSON.stringify(`${project}/src/`)} + name + '.ts')));
console.log('listens on nothing');
setInterval(() => {}, 1000);
`;
const nodeOnly = `console.log('listens on nothing'); setInterval(() => {}, 1000);`;

const script = (source: string): string[] => ['--input-type=module', '-e', source];

interface Start {
  readonly ms: number;
  readonly residentMiB: number;
}

/** Measures the time from the start of the process to the first 200 of its health route, and its resident memory then, by its parts. */
export async function* benchStart(): AsyncGenerator<Figure> {
  const dataDir = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const kinds = {
    skep: [executable, 'serve'],
    express: script(bareExpress),
    modules: script(modulesOnly),
    node: script(nodeOnly),
  };
  const starts: Record<keyof typeof kinds, Start[]> = { skep: [], express: [], modules: [], node: [] };
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const kind of ['skep', 'express', 'modules', 'node'] as const) starts[kind].push(await start(kinds[kind], dataDir));
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
  yield* figuresOf('start to ready', 'ms', (kind) => median(starts[kind].map(({ ms }) => ms)));
  yield* figuresOf('resident memory when idle', 'MiB', (kind) => median(starts[kind].map(({ residentMiB }) => residentMiB)));
}

function figuresOf(name: string, unit: string, of: (kind: 'skep' | 'express' | 'modules' | 'node') => number): Figure[] {
  const figure = (what: string, measured: number, reference: number, note: string): Figure => ({
    name: `${name}${what}`,
    measured: `${measured.toFixed(0)} ${unit}`,
    reference: `${reference.toFixed(0)} ${unit}`,
    ratio: measured / reference,
    bound: null,
    ok: true,
    note,
  });
  return [
    figure('', of('skep'), of('express'), 'reference: bare Express'),
    figure(', Node itself', of('node'), of('skep'), 'reference: the whole'),
    figure(', loading modules', of('modules') - of('node'), of('skep'), 'reference: the whole'),
    figure(', doing the work', of('skep') - of('modules'), of('skep'), 'reference: the whole'),
  ];
}

async function start(args: readonly string[], dataDir: string): Promise<Start> {
  const begun = performance.now();
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], SKEP_PORT: '0', SKEP_DATA_DIR: dataDir, SKEP_LOG_LEVEL: 'silent' };
  const child = spawn(process.execPath, args, { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  try {
    const url = await Promise.race([listening(child.stdout), exited.then(([code]) => Promise.reject(new Error(`it ended with ${String(code)}`)))]);
    if (url !== 'nothing') {
      const response = await fetch(`${url}/health`);
      await response.text();
      if (response.status !== 200) throw new Error(`health answered ${response.status}`);
    }
    const ms = performance.now() - begun;
    const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(child.pid)]);
    return { ms, residentMiB: Number(stdout) / 1024 };
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
}

async function listening(output: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of output) {
    text += String(chunk);
    const url = /listens on (\S+)/.exec(text)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('it never listened');
}

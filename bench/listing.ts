import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalGitProvider, type LocalGitOptions } from '../src/adapters/git-provider/local/index.ts';
import type { FileQuery, GitProvider } from '../src/ports/git-provider.ts';
import { boundedFigure, type Figure, inMs, median, timed } from './figure.ts';
import { addCommit, agents, createHistory } from './history.ts';
import { runCommand, sufficientCommands } from './single-command.ts';

const microagents = 200;
const long = { name: 'long', commits: 10_000 };
const short = { name: 'short', commits: 1000 };
const rounds = 25;
const query: FileQuery = { directory: () => agents, accepts: (path) => path.endsWith('.md') };

/** Measures listing a local repository: the first time, unchanged, and after one new commit. */
export async function* benchListing(): AsyncGenerator<Figure> {
  const root = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  try {
    for (const { name, commits } of [long, short]) await createHistory(join(root, name), commits, microagents);
    const { figure, coldMs } = await benchCold(root);
    yield figure;
    yield await benchUnchanged(root, coldMs);
    yield await benchNewCommit(root);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

async function benchCold(root: string): Promise<{ readonly figure: Figure; readonly coldMs: number }> {
  const gitDir = join(root, long.name);
  const cold = (): Promise<Map<string, number>> => withProvider({ root }, (provider) => list(provider, long.name));
  const commands = await sufficientCommands(gitDir, await cold());
  const best = await fastestCommand(gitDir, commands);
  const [ours, single]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await timed(cold));
    single.push(await timed(() => runCommand(gitDir, best)));
  }
  const [coldMs, singleMs] = [median(ours), median(single)];
  const texts = {
    name: `listing, cold, ${long.commits} commits`,
    measured: inMs(coldMs),
    reference: inMs(singleMs),
    note: `best of ${commands.length} single commands: git log ${best.join(' ')}`,
  };
  return { figure: boundedFigure(texts, coldMs / singleMs, { atMost: 1.3 }), coldMs };
}

async function fastestCommand(gitDir: string, commands: readonly (readonly string[])[]): Promise<readonly string[]> {
  const candidates = commands.map((options) => ({ options, times: new Array<number>() }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { options, times } of candidates) times.push(await timed(() => runCommand(gitDir, options)));
  }
  const [best] = candidates.toSorted((a, b) => median(a.times) - median(b.times));
  if (best === undefined) throw new Error('no single git command yields the same data');
  return best.options;
}

async function benchUnchanged(root: string, coldMs: number): Promise<Figure> {
  const log = join(root, 'processes');
  const gitBinary = join(root, 'counted-git');
  await writeFile(gitBinary, `#!/bin/sh\necho "$1" >> '${log}'\nexec git "$@"\n`);
  await chmod(gitBinary, 0o755);
  return await withProvider({ root, gitBinary }, async (provider) => {
    await list(provider, long.name);
    const before = await readFile(log, 'utf8');
    const times: number[] = [];
    for (let round = 0; round < rounds * 10; round += 1) times.push(await timed(() => list(provider, long.name)));
    const processes = (await readFile(log, 'utf8')).slice(before.length).split('\n').length - 1;
    const ms = median(times);
    const figure = boundedFigure(
      {
        name: 'listing, unchanged, times faster than cold',
        measured: inMs(ms),
        reference: inMs(coldMs),
        note: `${processes} git processes`,
      },
      coldMs / ms,
      { atLeast: 20 },
    );
    return { ...figure, ok: figure.ok && processes === 0 };
  });
}

async function benchNewCommit(root: string): Promise<Figure> {
  return await withProvider({ root }, async (provider) => {
    const histories = [short, long].map((history) => ({ ...history, times: new Array<number>() }));
    for (const { name } of histories) await list(provider, name);
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, times } of histories) {
        await addCommit(join(root, name), round);
        times.push(await timed(() => list(provider, name)));
      }
    }
    const [shortMs = 0, longMs = 0] = histories.map(({ times }) => median(times));
    return boundedFigure(
      {
        name: `listing, after one new commit, ${long.commits} commits`,
        measured: inMs(longMs),
        reference: inMs(shortMs),
        note: `reference: the same with ${short.commits} commits`,
      },
      longMs / shortMs,
      { atMost: 1.5 },
    );
  });
}

async function withProvider<T>(options: LocalGitOptions, use: (provider: GitProvider) => Promise<T>): Promise<T> {
  const provider = createLocalGitProvider(options);
  try {
    return await use(provider);
  } finally {
    await provider.close();
  }
}

/** Returns the dates of the listed files, in seconds. */
async function list(provider: GitProvider, repository: string): Promise<Map<string, number>> {
  const { files } = await provider.listFiles(repository, query);
  if (files.length !== microagents) throw new Error(`${files.length} files are listed, not ${microagents}`);
  return new Map(files.map(({ path, createdAt }) => [path, createdAt / 1000]));
}

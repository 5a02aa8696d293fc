import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGitHubProvider } from '../src/adapters/git-provider/github/index.ts';
import { createSystemClock } from '../src/adapters/clock/system-clock.ts';
import type { FileQuery, GitProvider } from '../src/ports/git-provider.ts';
import { createRepository } from '../test/contracts/git-repository.ts';
import { doubleToken, startGitHubDouble, type GitHubDouble } from '../test/doubles/github/index.ts';
import { boundedFigure, type Figure, inMs, median, timed } from './figure.ts';

const agents = '.skep/microagents';
const delayMs = 50;
const sizes = [1, 100, 1000];
const rounds = 5;
const firstSecond = 1_500_000_000;
const perCommit = 20;
const query: FileQuery = { directory: () => agents, accepts: (path) => path.endsWith('.md') };

interface Cost {
  readonly ms: number;
  readonly requests: number;
  /** Requests that overlap count as one. */
  readonly roundTrips: number;
}

/** Measures a first and an unchanged listing, with 50 ms per response of GitHub, against the obvious program. */
export async function* benchGitHub(): AsyncGenerator<Figure> {
  const folder = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const double = await startGitHubDouble({ delayMs });
  try {
    for (const size of sizes) {
      const gitDir = join(folder, `${size}.git`);
      await createRepository(gitDir, { commits: commitsOf(size) });
      double.repositories.put(`acme/with-${size}`, gitDir);
      yield* benchSize(double, size);
    }
  } finally {
    await double.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function pathOf(number: number): string {
  return `${agents}/agent-${number}.md`;
}

function dateOf(path: string): number {
  return (firstSecond + Math.floor(Number(/\d+/u.exec(path)?.[0]) / perCommit)) * 1000;
}

/** Each commit adds twenty files. Every tenth file is changed once. */
function commitsOf(size: number) {
  const numbers = Array.from({ length: size }, (_, index) => index);
  const commits = Array.from({ length: Math.ceil(size / perCommit) }, (_, commit) => commit);
  const brought = commits.map((commit) => ({
    id: `${commit}`,
    at: firstSecond + commit,
    files: numbers.slice(commit * perCommit, (commit + 1) * perCommit).map((number) => [pathOf(number), '1'] as const),
  }));
  const changed = numbers.filter((number) => number % 10 === 0).map((number) => [pathOf(number), '2'] as const);
  return [...brought, { id: 'changed', at: firstSecond + size, files: changed }];
}

async function* benchSize(double: GitHubDouble, size: number): AsyncGenerator<Figure> {
  const cold = (): Promise<void> => withProvider(double, (provider) => list(provider, size));
  // The double reads its repository only once, so only its delay is measured.
  await cold();
  const first = await costOf(double, rounds, cold);
  const obvious = await costOf(double, 1, () => listObviously(double, size));
  const texts = (name: string, cost: Cost) => ({ name: `GitHub, ${name}, ${size} microagents`, measured: inWords(cost), reference: inWords(obvious), note: 'reference: the obvious program' });
  const reported = (name: string, cost: Cost): Figure => ({ ...texts(name, cost), ratio: obvious.ms / cost.ms, bound: null, ok: true });
  yield size === 100 ? boundedFigure(texts('cold', first), obvious.ms / first.ms, { atLeast: 20 }) : reported('cold', first);
  const unchanged = await withProvider(double, async (provider) => {
    await list(provider, size);
    return await costOf(double, rounds, () => list(provider, size));
  });
  yield reported('unchanged', unchanged);
}

async function withProvider<T>({ url }: GitHubDouble, use: (provider: GitProvider) => Promise<T>): Promise<T> {
  const provider = createGitHubProvider({ url, token: doubleToken, clock: createSystemClock() });
  try {
    return await use(provider);
  } finally {
    await provider.close();
  }
}

async function list(provider: GitProvider, size: number): Promise<void> {
  const { files } = await provider.listFiles(`acme/with-${size}`, query);
  requireAll(new Map(files.map(({ path, createdAt }) => [path, createdAt])), size);
}

/** The obvious program: lists the directory, then requests the commits of each file, one file after the other. The last is the oldest. */
async function listObviously({ url }: GitHubDouble, size: number): Promise<void> {
  const repository = `${url}/repos/acme/with-${size}`;
  const entries = await getList(`${repository}/contents/${agents}`);
  const dates = new Map<string, number>();
  for (const { path } of entries) {
    if (path === undefined) continue;
    const commits = await getList(`${repository}/commits?path=${encodeURIComponent(path)}`);
    dates.set(path, Date.parse(commits.at(-1)?.commit?.committer.date ?? ''));
  }
  requireAll(dates, size);
}

interface Listed {
  readonly path?: string;
  readonly commit?: { readonly committer: { readonly date: string } };
}

async function getList(url: string): Promise<readonly Listed[]> {
  const answer = await fetch(url, { headers: { authorization: `token ${doubleToken}`, 'user-agent': 'obvious' } });
  const list: unknown = await answer.json();
  if (!answer.ok || !Array.isArray(list)) throw new Error(`the obvious program got ${answer.status}`);
  return list;
}

/** Throws unless both results are equal and correct. */
function requireAll(dates: ReadonlyMap<string, number>, size: number): void {
  const isRight = [...dates].every(([path, date]) => date === dateOf(path));
  if (dates.size !== size || !isRight) throw new Error(`${dates.size} files are listed, not ${size}, or their dates are wrong`);
}

async function costOf(double: GitHubDouble, times: number, work: () => Promise<void>): Promise<Cost> {
  const durations: number[] = [];
  for (let time = 0; time < times; time += 1) {
    double.forget();
    durations.push(await timed(work));
  }
  const { requests } = double;
  return { ms: median(durations), requests: requests.length, roundTrips: roundTripsOf(requests.map(({ at }) => at)) };
}

function roundTripsOf(arrivals: readonly number[]): number {
  let [roundTrips, answeredAt] = [0, Number.NEGATIVE_INFINITY];
  for (const at of arrivals) {
    if (at < answeredAt) continue;
    roundTrips += 1;
    answeredAt = at + delayMs;
  }
  return roundTrips;
}

function inWords({ ms, requests, roundTrips }: Cost): string {
  return `${inMs(ms)}, ${requests} requests, ${roundTrips} round trips`;
}

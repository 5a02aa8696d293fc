import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGitLabProvider } from '../src/adapters/git-provider/gitlab/index.ts';
import { createSystemClock } from '../src/adapters/clock/system-clock.ts';
import type { FileQuery } from '../src/ports/git-provider.ts';
import { createRepository, git } from '../test/contracts/git-repository.ts';
import { startGitLab, type GitLabDouble } from '../test/doubles/gitlab/index.ts';
import { boundedFigure, type Figure, inMs, timed } from './figure.ts';

const delayMs = 50;
const concurrency = 8;
const token = 'glpat-double';
const agents = '.skep/microagents';
const query: FileQuery = { directory: () => agents, accepts: (path) => path.endsWith('.md') };

/** Measures listing a project, with 50 ms per response of GitLab, against the obvious program. */
export async function* benchGitLab(): AsyncGenerator<Figure> {
  const root = await mkdtemp(join(tmpdir(), 'skep-bench-'));
  const host = await startGitLab({ token });
  try {
    for (const count of [1, 100, 1000]) yield* benchCount(host, root, count);
  } finally {
    await host.close();
    await rm(root, { recursive: true, force: true });
  }
}

interface Run {
  readonly ms: number;
  readonly requests: number;
  /** How many of the requests were sequential. */
  readonly roundTrips: number;
}

async function* benchCount(host: GitLabDouble, root: string, count: number): AsyncGenerator<Figure> {
  const gitDir = join(root, `${count}.git`);
  const names = Array.from({ length: count }, (_, index) => `agent-${String(index).padStart(4, '0')}`);
  const commitCount = Math.min(count, 20);
  const commits = Array.from({ length: commitCount }, (_, index) => ({
    id: `c${index}`,
    at: 1_600_000_000 + index,
    files: names.filter((_, number) => number % commitCount === index).map((name) => [`${agents}/${name}.md`, name] as const),
  }));
  await createRepository(gitDir, { commits });
  host.projects.put('acme/shop', gitDir);
  const sha = (await git(gitDir, ['rev-parse', 'HEAD'])).trim();
  const provider = createGitLabProvider({ url: host.url, token, clock: createSystemClock(), concurrency });
  const list = async (): Promise<void> => expectCount((await provider.listFiles('acme/shop', query)).files.length, count);
  try {
    // The double caches the results of git, so only its delay is measured.
    host.delayMs = 0;
    await obviousProgram(host, sha, count);
    const warmUp = createGitLabProvider({ url: host.url, token, clock: createSystemClock(), timeoutMs: 600_000 });
    await warmUp.listFiles('acme/shop', query);
    await warmUp.close();
    host.delayMs = delayMs;
    const [cold, warm] = [await measure(host, list), await measure(host, list)];
    const obvious = await measure(host, () => obviousProgram(host, sha, count));
    yield figureOf('cold', count, cold, obvious);
    yield figureOf('unchanged', count, warm, obvious);
  } finally {
    await provider.close();
  }
}

/** The obvious program: requests the pages of the directory, then the commits of each file, all in sequence. */
async function obviousProgram(host: GitLabDouble, sha: string, count: number): Promise<void> {
  const base = `${host.url}/api/v4/projects/acme%2Fshop/repository`;
  const paths: string[] = [];
  for (let page = 1; ; page += 1) {
    const entries = await getList(`${base}/tree?path=${encodeURIComponent(agents)}&ref=${sha}&recursive=true&per_page=100&page=${page}`);
    paths.push(...entries.map(({ path = '' }) => path));
    if (entries.length < 100) break;
  }
  const dates = [];
  for (const path of paths) dates.push((await getList(`${base}/commits?path=${encodeURIComponent(path)}&ref_name=${sha}&per_page=100`)).at(-1)?.committed_date);
  expectCount(dates.filter((date) => date !== undefined).length, count);
}

async function getList(url: string): Promise<{ readonly path?: string; readonly committed_date?: string }[]> {
  const response = await fetch(url, { headers: { 'private-token': token } });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return (await response.json()) as { path?: string; committed_date?: string }[];
}

async function measure(host: GitLabDouble, work: () => Promise<void>): Promise<Run> {
  const before = host.requests.length;
  const ms = await timed(work);
  const requests = host.requests.slice(before).toSorted((a, b) => a.ended - b.ended);
  let roundTrips = 0;
  let last = 0;
  for (const { began, ended } of requests) {
    if (began < last) continue;
    roundTrips += 1;
    last = ended;
  }
  return { ms, requests: requests.length, roundTrips };
}

function figureOf(what: string, count: number, run: Run, obvious: Run): Figure {
  const texts = {
    name: `GitLab, ${count} microagents, ${what}, times faster`,
    measured: textOf(run),
    reference: textOf(obvious),
    note: `${delayMs} ms for each answer; ${concurrency} at a time; reference: the obvious program`,
  };
  // One file can't be faster, so the number of requests is compared.
  const requests = what === 'unchanged' ? 1 : 1 + Math.ceil(count / 100) + count;
  const isWithin = run.requests <= requests;
  const ratio = obvious.ms / run.ms;
  if (count === 1) return { ...texts, ratio, bound: `<= ${requests} requests`, ok: isWithin };
  const figure = boundedFigure(texts, ratio, { atLeast: what === 'unchanged' ? 20 : 4 });
  return { ...figure, ok: figure.ok && isWithin };
}

function textOf({ ms, requests, roundTrips }: Run): string {
  return `${inMs(ms)}, ${requests} requests, ${roundTrips} round trips`;
}

function expectCount(actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`${actual} files are listed, not ${expected}`);
}

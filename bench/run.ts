import { parseArgs } from 'node:util';
import { benchChanges } from './conversations/changes.ts';
import { benchCrowd } from './conversations/crowd.ts';
import { benchLatency } from './conversations/latency.ts';
import { benchReady } from './conversations/ready.ts';
import { benchResume } from './conversations/resume.ts';
import { benchClient } from './client.ts';
import { benchDashboard } from './dashboard/page.ts';
import { whyNotOnEngine, type EngineNeeds } from './engine.ts';
import { benchExecutions } from './executions.ts';
import { formatFigure, type Figure } from './figure.ts';
import { benchFiles } from './files.ts';
import { benchGitHub } from './github.ts';
import { benchGitLab } from './gitlab.ts';
import { benchHttp } from './http.ts';
import { benchListing } from './listing.ts';
import { benchPaging } from './paging.ts';
import { benchProxy } from './ports/proxy.ts';
import { benchWake } from './ports/wake.ts';
import { benchCold } from './sandboxes/cold.ts';
import { benchCrash } from './sandboxes/crash.ts';
import { benchPool } from './sandboxes/pool.ts';
import { benchRest } from './sandboxes/rest.ts';
import { benchSearch } from './sandboxes/search.ts';
import { benchThroughput } from './sandboxes/throughput.ts';
import { benchStart } from './start.ts';
import { whyNotInChromium } from '../test/support/chromium.ts';

interface Part {
  readonly bench: () => AsyncIterable<Figure>;
  readonly about: string;
  /** What the part needs of a Docker engine, if it uses one. */
  readonly engine?: EngineNeeds;
  readonly usesBrowser?: true;
}

const tiny: EngineNeeds = { image: 'skep-test/tiny' };
const parts: Readonly<Record<string, Part>> = {
  benchListing: { bench: benchListing, about: 'microagents of a local repository, beside one git command' },
  benchPaging: { bench: benchPaging, about: 'pages out of 100,000 conversations' },
  benchHttp: { bench: benchHttp, about: 'sandboxes/search, beside a bare Express handler with the same query' },
  benchClient: { bench: benchClient, about: 'what the TypeScript client adds to a bare fetch' },
  benchDashboard: { bench: benchDashboard, about: 'the dashboard in Chromium, with 10,000 sandboxes and 1,000 conversations', usesBrowser: true },
  benchStart: { bench: benchStart, about: 'start and memory of the server' },
  benchGitHub: { bench: benchGitHub, about: 'microagents on a GitHub that takes 50 ms' },
  benchGitLab: { bench: benchGitLab, about: 'microagents on a GitLab that takes 50 ms' },
  benchSearch: { bench: benchSearch, about: 'a search with 10,000 sandboxes known' },
  benchLatency: { bench: benchLatency, about: "from a message to the agent's first event" },
  benchResume: { bench: benchResume, about: 'a turn that goes on after the server was killed' },
  benchCrowd: { bench: benchCrowd, about: '200 conversations at once' },
  benchProxy: { bench: benchProxy, about: 'requests and WebSockets to a port of a sandbox, beside the library alone' },
  benchCold: { bench: benchCold, about: 'a cold start of a sandbox', engine: { ...tiny, usesCli: true } },
  benchPool: { bench: benchPool, about: 'a start from the pool', engine: tiny },
  benchRest: { bench: benchRest, about: 'freeze and resume', engine: tiny },
  benchWake: { bench: benchWake, about: 'the first byte from a frozen sandbox', engine: tiny },
  benchThroughput: { bench: benchThroughput, about: '50 cold starts at once', engine: tiny },
  benchCrash: { bench: benchCrash, about: 'a crash in a sandbox, until it is seen', engine: tiny },
  benchExecutions: { bench: benchExecutions, about: 'a command over HTTP, beside an exec of the engine', engine: { image: 'skep-test/debian' } },
  benchFiles: { bench: benchFiles, about: 'files into a sandbox and out of it', engine: { image: 'skep-test/debian', usesCli: true } },
  benchChanges: { bench: benchChanges, about: 'the changes of a work tree of 10,000 files', engine: { image: 'skep-test/debian', usesCli: true } },
  benchReady: { bench: benchReady, about: 'a conversation until it is READY', engine: { image: 'skep-test/debian', usesCli: true } },
};

const usage = `npm run bench [-- PART ...]

Runs all parts, or those that are named. Prints each figure beside its limit or peer as soon as it is measured. The exit code is 1 if a
bound does not hold or a part fails. A part that lacks a Docker engine, an image or a browser is skipped. Parts with * use a Docker engine.

${Object.entries(parts).map(([name, { about, engine }]) => `  ${name.padEnd(16)}${engine === undefined ? ' ' : '*'} ${about}\n`).join('')}`;

const outcome = { ok: 0, missed: 0, skipped: 0, failed: 0 };

async function runPart(name: string, { bench, engine, usesBrowser }: Part): Promise<void> {
  const missing = (usesBrowser === true ? whyNotInChromium() : null) ?? (engine === undefined ? null : await whyNotOnEngine(engine));
  if (missing !== null) {
    outcome.skipped += 1;
    process.stdout.write(`skipped ${name}: ${missing}\n`);
    return;
  }
  process.stdout.write(`${name} ...\n`);
  try {
    for await (const figure of bench()) {
      outcome[figure.ok ? 'ok' : 'missed'] += 1;
      process.stdout.write(formatFigure(figure));
    }
  } catch (error) {
    outcome.failed += 1;
    process.stdout.write(`FAILED  ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  }
}

const { positionals, values } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean', short: 'h' } } });
const unknown = positionals.filter((name) => !Object.hasOwn(parts, name));
if (values.help === true) process.stdout.write(usage);
else if (unknown.length > 0) {
  process.stderr.write(`There is no part ${unknown.join(', ')}.\n\n${usage}`);
  process.exitCode = 2;
} else {
  for (const [name, part] of Object.entries(parts)) {
    if (positionals.length === 0 || positionals.includes(name)) await runPart(name, part);
  }
  const { ok, missed, skipped, failed } = outcome;
  process.stdout.write(`${ok} figures ok, ${missed} missed; ${skipped} parts skipped, ${failed} failed\n`);
  process.exitCode = missed + failed > 0 ? 1 : 0;
}

import { benchCrowd } from './conversations/crowd.ts';
import { benchLatency } from './conversations/latency.ts';
import { benchReady } from './conversations/ready.ts';
import { benchGitHub } from './github.ts';
import { benchGitLab } from './gitlab.ts';
import { benchHttp } from './http.ts';
import { benchListing } from './listing.ts';
import { benchPaging } from './paging.ts';
import { benchCold } from './sandboxes/cold.ts';
import { benchCrash } from './sandboxes/crash.ts';
import { benchPool } from './sandboxes/pool.ts';
import { benchRest } from './sandboxes/rest.ts';
import { benchSearch } from './sandboxes/search.ts';
import { benchThroughput } from './sandboxes/throughput.ts';
import { benchStart } from './start.ts';
import { formatFigures, type Figure } from './figure.ts';

const benches = {
  benchListing, benchPaging, benchHttp, benchStart, benchGitHub, benchGitLab,
  // These need a Docker engine, with the images that `.ci/engine` makes.
  benchCold, benchPool, benchRest, benchThroughput, benchSearch, benchCrash, benchReady,
  benchLatency, benchCrowd,
};
const asked = process.argv.slice(2);

/** Runs every benchmark, or those that are named, prints each figure beside its limit or peer, and fails where a bound does not hold. */
const figures: Figure[] = [];
for (const [name, bench] of Object.entries(benches)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  process.stderr.write(`${name} ...\n`);
  figures.push(...(await bench()));
}
process.stdout.write(formatFigures(figures));
process.exitCode = figures.every(({ ok }) => ok) ? 0 : 1;

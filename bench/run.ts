import { benchGitHub } from './github.ts';
import { benchGitLab } from './gitlab.ts';
import { benchHttp } from './http.ts';
import { benchListing } from './listing.ts';
import { benchPaging } from './paging.ts';
import { benchStart } from './start.ts';
import { formatFigures, type Figure } from './figure.ts';

/** Runs every benchmark, prints each figure beside its limit or peer, and fails where a bound does not hold. */
const figures: Figure[] = [];
for (const [name, bench] of Object.entries({ benchListing, benchPaging, benchHttp, benchStart, benchGitHub, benchGitLab })) {
  process.stderr.write(`${name} ...\n`);
  figures.push(...(await bench()));
}
process.stdout.write(formatFigures(figures));
process.exitCode = figures.every(({ ok }) => ok) ? 0 : 1;

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRecord, lookUp, descriptionFile } from './openapi.ts';
import { operations } from './routes.ts';

/*
 * Writes `github-rest.json`: the part of GitHub's description of its REST API for the operations that the double serves. The
 * description comes from the npm package `@octokit/openapi`, which is too large to be a dependency. Run it after you have added an
 * operation to the routes, or to get a newer description:
 *
 *     node test/doubles/github/rest/update-description.ts [version]
 */
const prose = new Set(['description', 'summary', 'title', 'example', 'examples', 'externalDocs']);
const source = `@octokit/openapi@${process.argv[2] ?? '23.0.2'}`;
const folder = mkdtempSync(join(tmpdir(), 'skep-github-rest-'));
try {
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, source], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [tarball = 'none'] = readdirSync(folder);
  const files = ['package/LICENSE', 'package/generated/api.github.com.json'];
  execFileSync('tar', ['-xzf', join(folder, tarball), '-C', folder, '--strip-components=1', ...files], { stdio: 'inherit' });
  const description: unknown = JSON.parse(readFileSync(join(folder, 'generated/api.github.com.json'), 'utf8'));
  const license = readFileSync(join(folder, 'LICENSE'), 'utf8').split('\n');
  const served = { source, license, openapi: lookUp(description, '#/openapi'), ...servedPart(description) };
  writeFileSync(descriptionFile, `${JSON.stringify(served, null, 1)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The served operations, with every component that they refer to, directly or not. */
function servedPart(description: unknown): Record<string, unknown> {
  const part: Record<string, unknown> = {};
  const wanted = operations.map(({ path, method }) => ['paths', path, method]);
  const seen = new Set<string>();
  for (const segments of wanted) {
    const pointer = `#/${segments.map((segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;
    if (seen.has(pointer)) continue;
    seen.add(pointer);
    const value = lookUp(description, pointer);
    if (!isRecord(value)) throw new Error(`${source} has no ${pointer}`);
    const kept = segments[0] === 'paths' ? keepOperation(value) : withoutProse(value);
    put(part, segments, kept);
    wanted.push(...refsIn(kept));
  }
  return part;
}

/** Returns what the double checks: the parameters, the body, and the response of a success. */
function keepOperation({ parameters, requestBody, responses }: Readonly<Record<string, unknown>>): unknown {
  const successes = isRecord(responses) ? Object.entries(responses).filter(([status]) => status === '200' || status === '201') : [];
  const body = requestBody === undefined ? {} : { requestBody: jsonOf(requestBody) };
  return withoutProse({ parameters, ...body, responses: Object.fromEntries(successes.map(([status, response]) => [status, jsonOf(response)])) });
}

/** Media types besides JSON refer to other schemas, and headers are not checked. */
function jsonOf(response: unknown): unknown {
  return { content: { 'application/json': lookUp(response, '#/content/application~1json') } };
}

/** Removes texts, examples and extensions. Keeps all names of properties. */
function withoutProse(value: unknown, areNames = false): unknown {
  if (Array.isArray(value)) return value.map((each) => withoutProse(each));
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([name]) => areNames || (!prose.has(name) && !name.startsWith('x-')));
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutProse(each, !areNames && name === 'properties')]));
}

function refsIn(value: unknown): string[][] {
  if (Array.isArray(value)) return value.flatMap(refsIn);
  if (!isRecord(value)) return [];
  const { $ref } = value;
  const own = typeof $ref === 'string' ? [$ref.replace(/^#\//u, '').split('/')] : [];
  return [...own, ...Object.values(value).flatMap(refsIn)];
}

function put(target: Record<string, unknown>, [name = '', ...rest]: readonly string[], value: unknown): void {
  const below = target[name];
  const next: Record<string, unknown> = isRecord(below) ? { ...below } : {};
  if (rest.length > 0) put(next, rest, value);
  target[name] = rest.length > 0 ? next : value;
}

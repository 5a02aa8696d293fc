import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const documents = globSync('{*,.skep/**/*,agents/**/*,docs/**/*,examples/**/*}.md', { cwd: root });
const packaged = readPackagedPaths();

function readPackagedPaths(): readonly string[] {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
  return files;
}

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** The text without its code blocks and code spans, where nothing is a link or a heading. */
function proseOf(file: string): string {
  return textOf(file).replaceAll(/^ *(`{3,})[\s\S]*?^ *\1 *$/gm, '').replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()#]/g, ' '));
}

/** The targets of inline links, images and link definitions, without those on other hosts. */
function linksOf(file: string): readonly string[] {
  const inline = [...proseOf(file).matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g)];
  const definitions = [...proseOf(file).matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)];
  return [...inline, ...definitions].map(([, target]) => target ?? '').filter((target) => !/^[a-z]+:/i.test(target));
}

/** The anchors that GitHub gives to the headings. */
function anchorsOf(file: string): readonly string[] {
  const headings = [...textOf(file).replaceAll(/^ *(`{3,})[\s\S]*?^ *\1 *$/gm, '').matchAll(/^#{1,6} +(.+?) *$/gm)];
  const slugs = headings.map(([, heading]) => (heading ?? '').toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-'));
  return slugs.map((slug, place) => {
    const earlier = slugs.slice(0, place).filter((other) => other === slug).length;
    return earlier === 0 ? slug : `${slug}-${earlier}`;
  });
}

/** Why the link leads nowhere; null if it leads somewhere. */
function problemOf(file: string, link: string): string | null {
  const [path = '', anchor] = link.split('#').map((part) => decodeURIComponent(part));
  const target = path === '' ? file : relative(root, join(root, dirname(file), path));
  if (!existsSync(join(root, target))) return `${file}: ${link} does not exist`;
  if (anchor !== undefined && !anchorsOf(target).includes(anchor)) return `${file}: ${link} has no such heading`;
  if (isPackaged(file) && !isPackaged(target)) return `${file}: ${link} is not in the package; add it to "files" in package.json`;
  return null;
}

function isPackaged(file: string): boolean {
  return packaged.some((path) => file === path || file.startsWith(`${path}/`));
}

test.each(documents)('every relative link and anchor of %s resolves', (file) => {
  expect(linksOf(file).map((link) => problemOf(file, link)).filter((problem) => problem !== null)).toEqual([]);
});

test('README.md has links, and at most 200 lines', () => {
  expect(linksOf('README.md').length).toBeGreaterThan(10);
  expect(textOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(200);
});

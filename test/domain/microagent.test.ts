import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isMicroagentPath, microagentDirectory, microagentsOf } from '../../src/domain/microagent.ts';

describe('the microagent directory', () => {
  test.each([
    ['other', '.skep', 'microagents'],
    ['gitlab', 'skep-config', 'microagents'],
    ['gitlab', '.skep', '.skep/microagents'],
    ['other', 'skep-config', '.skep/microagents'],
    ['other', 'shop', '.skep/microagents'],
    ['gitlab', 'shop', '.skep/microagents'],
    ['other', '.SKEP', '.skep/microagents'],
  ] as const)('of a host of family %s and a repository named %s is %s', (family, name, directory) => {
    expect(microagentDirectory(family, name, 'skep')).toBe(directory);
  });

  test('stays inside the repository for any repository name', () => {
    const product = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,20}$/);
    fc.assert(
      fc.property(fc.constantFrom('gitlab', 'other'), fc.oneof(fc.string(), product.map((word) => `.${word}`)), product, (family, name, word) => {
        const directory = microagentDirectory(family, name, word);
        expect([`.${word}/microagents`, 'microagents']).toContain(directory);
        expect(posix.resolve('/repository', directory)).toBe(`/repository/${directory}`);
      }),
    );
  });
});

describe('microagent files', () => {
  test.each(['a.md', 'deploy/aws.md', 'A.MD', 'x.mD', 'readme.md.md', 'myreadme.md', 'README/a.md'])('%s is one', (path) => {
    expect(isMicroagentPath(path)).toBe(true);
  });

  test.each(['README.md', 'readme.MD', 'deep/ReadMe.md', 'a.txt', 'amd', 'a.md/b', 'a.mdx'])('%s is not one', (path) => {
    expect(isMicroagentPath(path)).toBe(false);
  });

  test('are named by their path below the directory without the extension, and sorted by path', () => {
    const files = ['.skep/microagents/b.md', '.skep/microagents/deploy/aws.MD', '.skep/microagents/a.md', '.skep/microagents/README.md', '.skep/other.md'];
    expect(microagentsOf('.skep/microagents', files.map((path, createdAt) => ({ path, createdAt })))).toEqual([
      { name: 'a', path: '.skep/microagents/a.md', createdAt: 2 },
      { name: 'b', path: '.skep/microagents/b.md', createdAt: 0 },
      { name: 'deploy/aws', path: '.skep/microagents/deploy/aws.MD', createdAt: 1 },
    ]);
  });
});

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { importsOf, layers, leaksIn, readSources } from './arrows.ts';

const sources = readSources(join(import.meta.dirname, '../../src'));

describe('the arrows of the house', () => {
  test('no file of src imports what its layer may not', () => {
    expect(leaksIn(sources)).toEqual([]);
  });

  test('every layer was looked at, and its imports were found', () => {
    for (const layer of layers) {
      const files = sources.filter(({ path }) => path.startsWith(`${layer}/`));
      expect(files.length, layer).toBeGreaterThan(1);
      expect(files.flatMap(importsOf).length, layer).toBeGreaterThan(3);
    }
  });

  test.each([
    ['domain/a.ts', `import { x } from '../ports/store.ts';`],
    ['domain/a.ts', `import { readFileSync } from 'node:fs';`],
    ['ports/a.ts', `export * from '../adapters/store/sqlite/index.ts';`],
    ['application/a.ts', `const a = await import('../adapters/store/sqlite/index.ts');`],
    ['application/a.ts', `import type { A } from 'express';`],
    ['application/a.ts', `export type A = import('../composition/options.ts').SkepOptions;`],
    ['client/a.ts', `import type { Sandbox } from '../domain/sandbox.ts';`],
    ['dashboard/a.tsx', `import type { Skep } from '../application/skep.ts';`],
    ['dashboard/a.tsx', `import { createReadStream } from 'node:fs';`],
    ['adapters/http/a.ts', `import { App } from '../../dashboard/app.tsx';`],
    ['adapters/store/sqlite/a.ts', `import { b } from '../postgres/index.ts';`],
    ['adapters/store/sqlite/a.ts', `import { b } from '../../clock/system-clock.ts';`],
    ['adapters/store/sqlite/a.ts', `import type { Sandboxes } from '../../../application/sandboxes/sandboxes.ts';`],
    ['adapters/store/rows.ts', `import { b } from './sqlite/index.ts';`],
    ['adapters/shared/a.ts', `import { b } from '../store/sqlite/index.ts';`],
    ['adapters/shared/a.ts', `import type { Sandboxes } from '../../application/sandboxes/sandboxes.ts';`],
    ['adapters/http/a.ts', `import { Container } from 'inversify';`],
    ['adapters/http/a.ts', `import { createSkep } from '../../composition/index.ts';`],
    ['adapters/cli/a.ts', `import type { Skep } from '../../application/skep.ts';`],
    ['elsewhere/a.ts', `import { x } from '../domain/failure.ts';`],
  ])('a leak planted in %s is caught: %s', (path, text) => {
    expect(leaksIn([{ path, text }])).toHaveLength(1);
  });

  test.each([
    ['adapters/http/a.ts', `import type { Skep } from '../../application/skep.ts';`],
    ['adapters/http/routes/a.ts', `import { x } from '../b.ts';`],
    ['adapters/cli/a.ts', `import { createClient } from '../../client/index.ts';`],
    ['dashboard/pages/a.tsx', `import { useState } from 'preact/hooks'; import { createClient } from '../../client/index.ts';`],
    ['adapters/store/sqlite/a.ts', `import { DatabaseSync } from 'node:sqlite'; import './b.ts';`],
    ['adapters/store/sqlite/a.ts', `import { rows } from '../rows.ts';`],
    ['adapters/git-provider/github/a.ts', `import { createSingleFlight } from '../../shared/single-flight.ts';`],
    ['composition/a.ts', `import 'reflect-metadata'; import '../adapters/store/sqlite/index.ts';`],
  ])('what is allowed in %s is let pass: %s', (path, text) => {
    expect(leaksIn([{ path, text }])).toEqual([]);
  });

  test('no line is longer than 140 characters', () => {
    const long = sources.flatMap(({ path, text }) => text.split('\n').flatMap((line, at) => (line.length > 140 ? [`${path}:${at + 1}`] : [])));
    expect(long).toEqual([]);
  });

  test('the domain is pure: no clock, no promise, no randomness, no I/O', () => {
    const impure = /\b(Date\.now|new Date\(\)|Math\.random|async |await |Promise\b|setTimeout|process\.|console\.|fetch\()/;
    const files = sources.filter(({ path }) => path.startsWith('domain/'));
    expect(files.filter(({ text }) => impure.test(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ''))).map(({ path }) => path)).toEqual([]);
  });
});

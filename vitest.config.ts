import { availableParallelism } from 'node:os';
import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = import.meta.dirname;
const all = '{test,examples}/**/*.test.ts';
const heavyFolders = 'test/{adapters/sandbox-runtime/docker,crash,e2e,package,server-image}/**/*.test.ts';

/** Files that start servers or agents, or use the Docker engine, run three at a time, after the others. Most of their time is waiting. */
const elsewhere = globSync(all, { cwd: root }).filter((file) => /describeWith(Docker|OpenCode)/.test(readFileSync(`${root}/${file}`, 'utf8')));
const heavy = [heavyFolders, ...elsewhere];

// Limits are for what hangs; machines that are slow or busy stay far below them.
const limits = { testTimeout: 120_000, hookTimeout: 180_000, teardownTimeout: 60_000 };

// Examples import the package by its name, as others do: here that is the sources.
const alias = [
  { find: /^skep$/, replacement: `${root}/src/composition/index.ts` },
  { find: /^skep\/client$/, replacement: `${root}/src/client/index.ts` },
  { find: /^skep\/testing$/, replacement: `${root}/test/contracts/index.ts` },
];

const workers = Math.max(2, availableParallelism());

/** Short files that take long: contracts, and what is killed again and again. They begin first, so that nothing waits for them in the end. */
const isLong = ({ moduleId }: TestSpecification): boolean => /\.contract\.|crash|server-image/.test(moduleId);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- not that of an array
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      { resolve: { alias }, test: { ...limits, name: 'light', include: [all], exclude: heavy, maxWorkers: workers, sequence: { groupOrder: 0 } } },
      { test: { ...limits, name: 'heavy', include: heavy, maxWorkers: 3, sequence: { groupOrder: 1 } } },
    ],
  },
});

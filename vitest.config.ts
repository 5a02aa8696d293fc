import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = import.meta.dirname;

/** Tests that start no processes: those of the domain, the use cases, HTTP and git hosts. */
const withoutProcesses = [
  'test/{domain,application}/**/*.test.ts',
  'test/adapters/{auth,e2b,http}/**/*.test.ts',
  'test/adapters/git-provider/{github,gitlab}/**/*.test.ts',
];

/** Files that take long begin first, so that no worker is left alone with one in the end. */
const isLong = ({ moduleId }: TestSpecification): boolean => /\.contract\.|crash|\.model\.|server-image/.test(moduleId);

/** Long files begin, since they wait much. Those without processes use the cores meanwhile, one after the other in a worker. */
const rank = (file: TestSpecification): number => (isLong(file) ? 0 : file.project.config.isolate ? 2 : 1);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- not that of an array
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}

export default defineConfig({
  resolve: {
    // Examples import the package by its name, as others do: here that is the sources.
    alias: [
      { find: /^skep$/, replacement: `${root}/src/composition/index.ts` },
      { find: /^skep\/client$/, replacement: `${root}/src/client/index.ts` },
      { find: /^skep\/testing$/, replacement: `${root}/test/contracts/index.ts` },
    ],
  },
  test: {
    projects: [
      // The files of a worker share its modules: importing them for each file takes a third of the CPU time.
      { extends: true, test: { name: 'shared modules', include: withoutProcesses, isolate: false } },
      // These start many processes. That takes more time the more memory the worker has, so each file has a new one.
      { extends: true, test: { name: 'own modules', include: ['{test,examples}/**/*.test.ts'], exclude: withoutProcesses } },
    ],
    // Limits are for what hangs; machines that are slow or busy stay far below them.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    // Many tests wait for servers, agents or the engine. One worker more than there are cores keeps the cores busy meanwhile.
    maxWorkers: Math.max(3, availableParallelism() + 1),
    // For the programs that tests start: otherwise each removes the types of its first module anew, a fifth of the CPU time of a short command.
    env: { NODE_COMPILE_CACHE: `${root}/node_modules/.cache/compiled` },
    sequence: { sequencer: LongestFirst },
  },
});

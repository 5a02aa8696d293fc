import assert from 'node:assert/strict';
import { agents, byPath, type StageCase } from './git-provider-harness.ts';
import { oneCommit } from './git-repository.ts';
import { decidedBy } from './contract.ts';

const start = 1_600_000_000;

export const fileCases: readonly StageCase[] = [
  [
    'lists regular files at any depth, with paths from the root',
    async ({ publish, list }) => {
      const repository = await publish(oneCommit(start, [
        [`${agents}/a.md`, 'a'],
        [`${agents}/deploy/aws.md`, 'b'],
        [`${agents}/deploy/deep/er/still.md`, 'c'],
        [`${agents}/run.sh`, { executable: 'd' }],
        [`${agents}-old/x.md`, 'e'],
        ['.skep/y.md', 'f'],
        [`below/${agents}/z.md`, 'g'],
      ]));
      assert.deepEqual(await list(repository), [
        [`${agents}/a.md`, start],
        [`${agents}/deploy/aws.md`, start],
        [`${agents}/deploy/deep/er/still.md`, start],
        [`${agents}/run.sh`, start],
      ]);
    },
  ],
  [
    'calls accepts with paths below the directory, and lists only accepted files',
    async ({ publish, provider }) => {
      const wanted = ['UPPER.MD', 'lower.md', 'deploy/Mixed.Md'];
      const others = ['README.md', 'deploy/readme.MD', 'notes.txt'];
      const repository = await publish(oneCommit(start, [...wanted, ...others].map((name) => [`${agents}/${name}`, name])));
      const asked: string[] = [];
      const listing = await provider.listFiles(repository, {
        directory: () => agents,
        accepts: (path) => {
          asked.push(path);
          return wanted.includes(path);
        },
      });
      assert.deepEqual(asked.toSorted(), [...wanted, ...others].toSorted());
      assert.deepEqual(
        listing.files.map(({ path }) => path).toSorted(),
        wanted.map((name) => `${agents}/${name}`).toSorted(),
      );
    },
  ],
  [
    'leaves out links and submodules, and calls accepts for neither',
    async ({ publish, list }) => {
      const repository = await publish(oneCommit(start, [
        [`${agents}/file.md`, 'a'],
        [`${agents}/link.md`, { link: 'file.md' }],
        [`${agents}/folder`, { link: '../../docs' }],
        ['docs/a.md', 'a'],
        [`${agents}/module.md`, { submodule: '1'.repeat(40) }],
      ]));
      assert.deepEqual(await list(repository), [[`${agents}/file.md`, start]]);
    },
  ],
  [
    'returns an empty list if the directory is missing, a file, a link or a submodule',
    async ({ publish, list }) => {
      const repository = await publish(oneCommit(start, [
        ['file', 'a'],
        ['folder/a.md', 'a'],
        ['link', { link: 'folder' }],
        ['module', { submodule: '1'.repeat(40) }],
      ]));
      for (const directory of ['missing', 'missing/deeper', 'file', 'file/deeper', 'link', 'module']) {
        assert.deepEqual(await list(repository, directory), [], directory);
      }
      assert.deepEqual(await list(repository, 'folder'), [['folder/a.md', start]]);
    },
  ],
  [
    'lists 250 files, each with its own date',
    async ({ publish, list }) => {
      const numbers = Array.from({ length: 250 }, (_, index) => index);
      const repository = await publish({
        commits: numbers.map((number) => ({
          id: `c${number}`,
          at: start + number,
          files: [[`${agents}/group-${number % 7}/agent-${number}.md`, 'x']],
        })),
      });
      const expected = numbers.map((number) => [`${agents}/group-${number % 7}/agent-${number}.md`, start + number] as const);
      assert.deepEqual(await list(repository), expected.toSorted(byPath));
    },
  ],
  [
    'lists a directory of 1,100 files, and calls accepts for each',
    async ({ publish, provider }) => {
      const names = Array.from({ length: 1100 }, (_, index) => `agent-${String(index).padStart(4, '0')}.md`);
      const wanted = [names[0], names.at(-1)];
      const repository = await publish(oneCommit(start, names.map((name) => [`${agents}/${name}`, name])));
      const asked: string[] = [];
      const accepts = (path: string): boolean => {
        asked.push(path);
        return wanted.includes(path);
      };
      const { files } = await provider.listFiles(repository, { directory: () => agents, accepts });
      assert.deepEqual(asked.toSorted(), names);
      assert.deepEqual(files.map(({ path }) => path).toSorted(), wanted.map((name) => `${agents}/${name}`));
    },
  ],
  [
    'dates files by their own names, not by those that a pattern in them matches',
    async ({ publish, list }) => {
      const pairs = [['star*', 'starfish'], ['what?', 'whats'], ['[set]', 's'], ['**', 'all']] as const;
      const repository = await publish({
        commits: [
          { id: 'matched', at: start, files: pairs.flatMap(([, matched]) => filesOf(matched)) },
          { id: 'patterns', at: start + 10, files: pairs.flatMap(([pattern]) => filesOf(pattern)) },
        ],
      });
      const dated = pairs.flatMap(([pattern, name]) => [[pattern, start + 10] as const, [name, start] as const]);
      const expected = dated.flatMap(([name, at]) => [[`${agents}/${name}.md`, at] as const, [`${agents}/${name}/x.md`, at] as const]);
      assert.deepEqual(await list(repository), expected.toSorted(byPath));
      for (const [name, at] of dated) assert.deepEqual(await list(repository, `${agents}/${name}`), [[`${agents}/${name}/x.md`, at]], name);
    },
  ],
  [
    'lists names with spaces, quotes, line feeds, patterns and Unicode unchanged',
    async ({ publish, list }) => {
      const names = [
        ' leading and trailing ',
        '"quoted"',
        "it's",
        'back\\slash',
        'line\nfeed',
        '\nfirst',
        'tab\tbed',
        'star*',
        '[set]?',
        ':(glob)**',
        '!not',
        '-dash',
        '--help',
        '#hash',
        '%ct',
        '1600000000',
        'grüße',
        '日本語',
        'e\u0301',
        '🐝',
        '\u2028',
      ];
      const repository = await publish({
        commits: names.map((name, index) => ({
          id: `c${index}`,
          at: start + index,
          files: [[`${agents}/${name}/${name}.md`, name]],
        })),
      });
      const expected = names.map((name, index) => [`${agents}/${name}/${name}.md`, start + index] as const);
      assert.deepEqual(await list(repository), expected.toSorted(byPath));
    },
  ],
  [
    'takes the directory literally',
    async ({ publish, list }) => {
      const directories = ['a*', 'ab', 'a?', '[a]b', ':(top)a', 'ü/"q"', '-a', 'a%62'];
      const repository = await publish(oneCommit(start, directories.map((directory) => [`${directory}/x.md`, 'x'])));
      for (const directory of directories) {
        assert.deepEqual(await list(repository, directory), [[`${directory}/x.md`, start]]);
      }
    },
  ],
  [
    'lists or omits names that are not UTF-8, as declared',
    async ({ publish, list, traits }) => {
      const bytes = Buffer.concat([Buffer.from(`${agents}/`), Buffer.from([0xff, 0xfe]), Buffer.from('.md')]);
      const repository = await publish({
        commits: [
          { id: 'odd', at: start, files: [[bytes, 'x']] },
          { id: 'plain', at: start + 1, files: [[`${agents}/plain.md`, 'x']] },
        ],
      });
      const plain = [`${agents}/plain.md`, start + 1] as const;
      const expected = {
        replaced: [plain, [`${agents}/\ufffd\ufffd.md`, start] as const],
        omitted: [plain],
      };
      const listed = await list(repository);
      await decidedBy(traits, 'invalidUtf8', (trait) => assert.deepEqual(listed, expected[trait]));
    },
  ],
];

/** Returns a file and a directory with this name. */
function filesOf(name: string) {
  return [[`${agents}/${name}.md`, '1'], [`${agents}/${name}/x.md`, '1']] as const;
}

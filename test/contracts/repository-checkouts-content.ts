import assert from 'node:assert/strict';
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { git, type RepositoryDescription } from './git-repository.ts';
import type { CheckoutCase, CheckoutStage } from './repository-checkouts-harness.ts';
import { decidedBy } from './contract.ts';
import type { WorkTree } from './work-tree.ts';

const start = 1_600_000_000;

/** A default branch, and another one that has diverged from it. */
const forked: RepositoryDescription = {
  defaultBranch: 'trunk',
  branches: { 'feature/a-b"c': 'feature' },
  commits: [
    { id: 'root', at: start, files: [['README.md', 'hello\n']] },
    { id: 'feature', parents: ['root'], at: start + 10, files: [['feature.txt', 'only there\n']] },
    { id: 'trunk', parents: ['root'], at: start + 20, files: [['src/run.sh', { executable: 'echo\n' }], ['src/lib/a.ts', 'a\n']] },
  ],
};

const trunkFiles = { 'README.md': 'hello\n', 'src/lib/a.ts': 'a\n', 'src/run.sh': 'executable: echo\n' };

export const contentCases: readonly CheckoutCase[] = [
  [
    'creates a work tree of the default branch',
    async (stage) => {
      const source = await stage.publish(forked);
      const tree = await stage.open(source);
      assert.equal(tree.branch, 'trunk');
      assert.match(tree.commit ?? '', /^[0-9a-f]{40}$/u);
      assert.deepEqual(tree.files, trunkFiles);
      await isGit(stage, source.gitDir, tree, 'trunk');
    },
  ],
  [
    'creates a work tree of another branch',
    async (stage) => {
      const source = await stage.publish(forked);
      const branch = 'feature/a-b"c';
      const tree = await stage.open(source, branch);
      assert.equal(tree.branch, branch);
      assert.deepEqual(tree.files, { 'README.md': 'hello\n', 'feature.txt': 'only there\n' });
      await isGit(stage, source.gitDir, tree, branch);
    },
  ],
  [
    'creates a work tree without a commit if the repository is empty',
    async (stage) => {
      const { open, publish, traits } = stage;
      const tree = await open(await publish({ commits: [] }));
      assert.deepEqual([tree.branch, tree.commit, tree.files], [null, null, {}]);
      if (traits.workTree === 'files') return;
      await tree.git('commit', '--quiet', '--allow-empty', '--message', 'first');
      assert.equal(await tree.git('rev-list', '--count', 'HEAD'), '1');
    },
  ],
  [
    'keeps file names, links and modes unchanged',
    async (stage) => {
      const long = `${'deep/'.repeat(40)}${'n'.repeat(150)}.txt`;
      const files: [string, string][] = [
        [long, 'long\n'],
        ['-rf', 'dash\n'],
        ['UPPER.txt', 'upper\n'],
        ['upper.txt', 'lower\n'],
        [' spaces ', ''],
        ['line\nfeed', 'line feed\n'],
        ['tab\t"quoted"', 'quoted\n'],
        ['Grüße/日本語.txt', 'unicode\n'],
        ['back\\slash', 'backslash\n'],
      ];
      const links = [
        ['link', 'UPPER.txt'],
        ['out', '../../../../etc/passwd'],
        ['absolute', '/etc/passwd'],
        ['dangling', 'nowhere'],
        ['far', 'x'.repeat(200)],
      ] as const;
      const source = await stage.publish({
        commits: [{ id: 'only', at: start, files: [...files, ...links.map(([path, link]) => [path, { link }] as const)] }],
      });
      const tree = await stage.open(source);
      const expected = [...files, ...links.map(([path, target]) => [path, `link: ${target}`] as const)];
      assert.deepEqual(tree.files, Object.fromEntries(expected));
      await isGit(stage, source.gitDir, tree, 'main');
    },
  ],
  [
    'writes the same file contents as git, with any attributes in .gitattributes',
    async (stage) => {
      if (stage.traits.workTree === 'files') return;
      const attributes = ['*.crlf text eol=crlf', '*.sub export-subst', 'hidden* export-ignore', '*.big filter=lfs diff=lfs -text', ''];
      const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n';
      const source = await stage.publish({
        commits: [
          {
            id: 'only',
            at: start,
            files: [
              ['.gitattributes', attributes.join('\n')],
              ['a.crlf', 'one\ntwo\n'],
              ['a.sub', '$Format:%H$\n'],
              ['hidden.txt', 'here\n'],
              ['hidden/too', 'here\n'],
              ['a.big', pointer],
              ['library', { submodule: 'a'.repeat(40) }],
            ],
          },
        ],
      });
      const tree = await stage.open(source);
      const { '.gitattributes': _, ...files } = tree.files;
      const here = { 'hidden.txt': 'here\n', 'hidden/too': 'here\n' };
      const expected = { 'a.big': pointer, 'a.crlf': 'one\r\ntwo\r\n', 'a.sub': '$Format:%H$\n', ...here };
      assert.deepEqual(files, expected);
      assert.deepEqual(await readdir(join(tree.folder, 'library')), []);
      await isGit(stage, source.gitDir, tree, 'main');
    },
  ],
  [
    'creates a work tree whose commits have the requested author, unless the environment names one',
    async ({ open, publish, traits }) => {
      const source = await publish(forked);
      // Git leaves the characters of the second name out, and refuses an empty name.
      for (const [name, written] of [[`Ann "A" \\ O'Hara; #1`, `Ann "A" \\ O'Hara; #1`], ['...', 'a@example.org']] as const) {
        const tree = await open({ ...source, author: { name, email: 'a@example.org' } });
        if (traits.workTree === 'files') return;
        assert.deepEqual([await tree.git('config', 'user.name'), await tree.git('config', 'user.email')], [written, 'a@example.org']);
        assert.match(await tree.git('var', 'GIT_AUTHOR_IDENT'), /^A <a@example\.com>/u);
      }
      await assert.rejects((await open(source)).git('config', 'user.name'));
    },
  ],
  [
    'checks out repositories that use SHA-256',
    async (stage) => {
      const source = await stage.publish({ ...forked, objectFormat: 'sha256' });
      const tree = await stage.open(source);
      assert.deepEqual(tree.files, trunkFiles);
      await isGit(stage, source.gitDir, tree, 'trunk');
    },
  ],
];

/** Asserts that the work tree is valid for git, and contains the whole history of the branch and nothing else. */
async function isGit({ traits }: CheckoutStage, gitDir: string, { git: run, commit, folder }: WorkTree, branch: string): Promise<void> {
  if (traits.workTree === 'files') return;
  const ref = `refs/heads/${branch}`;
  assert.equal(commit, (await git(gitDir, ['rev-parse', ref])).trim());
  assert.equal(await run('rev-parse', 'HEAD'), commit);
  assert.equal(await run('symbolic-ref', 'HEAD'), ref);
  assert.equal(await run('status', '--porcelain', '--ignored'), '');
  assert.equal(await run('log', '--format=%H %cI %s'), (await git(gitDir, ['log', '--format=%H %cI %s', ref])).trim());
  await run('fsck', '--full', '--strict');
  const wanted = await git(gitDir, ['rev-list', '--objects', '--no-object-names', ref]);
  const held = await run('cat-file', '--batch-all-objects', '--batch-check=%(objectname)');
  assert.deepEqual(held.split('\n').toSorted(), wanted.trim().split('\n').toSorted());
  await decidedBy(traits, 'origin', async (origin) => {
    assert.equal(await run('remote'), origin === 'named' ? 'origin' : '');
    if (origin === 'named') assert.equal(await run('rev-parse', '--abbrev-ref', '@{upstream}'), `origin/${branch}`);
  });
  // As in a clone, but without anything of the host.
  assert.deepEqual(await readdir(join(folder, '.git/hooks')), []);
  assert.deepEqual((await readdir(join(folder, '.git/info'))).filter((name) => name !== 'exclude'), []);
  await assert.rejects(access(join(folder, '.git/objects/info/alternates')));
}

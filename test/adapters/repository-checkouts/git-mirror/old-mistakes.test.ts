import { execFileSync, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { take } from './snapshot-support.ts';
import { createScene, never, open } from './support.ts';

describe('A snapshot of a repository with an old mistake', () => {
  test.each([
    ['badTimezone', (commit: string) => commit.replace(/ \+0000$/mu, ' +051800')],
    ['missingSpaceBeforeDate', (commit: string) => commit.replace(/> (?=\d)/u, '>')],
    ['zeroPaddedFilemode', (commit: string, padded: string) => commit.replace(/^tree .*/u, `tree ${padded}`)],
  ])('in its last commit has the changes: %s', async (mistake, make) => {
    const scene = await createScene([{ id: 'first', at: 1, files: [['folder/file', 'one\n']] }]);
    const git = (args: readonly string[], input: string | Buffer = ''): string =>
      execFileSync('git', ['-C', join(scene.served, 'acme/shop.git'), ...args], { input, encoding: 'utf8' });
    const add = (type: string, content: string | Buffer): string => git(['hash-object', '-w', '--literally', '-t', type, '--stdin'], content).trim();
    const padded = add('tree', Buffer.concat([Buffer.from('040000 folder\0'), Buffer.from(git(['rev-parse', 'HEAD:folder']).trim(), 'hex')]));
    git(['update-ref', 'HEAD', add('commit', make(git(['cat-file', 'commit', 'HEAD']), padded))]);
    expect(spawnSync('git', ['-C', join(scene.served, 'acme/shop.git'), 'fsck', '--strict'], { encoding: 'utf8' }).stderr).toContain(mistake);
    const mirror = scene.mirror();
    const tree = await open(mirror, scene.request);
    await writeFile(join(tree.folder, 'new'), 'new\n');
    await using snapshot = await take(mirror, tree);
    expect((await snapshot.files(never)).map(({ path }) => path)).toEqual(['new']);
  });
});

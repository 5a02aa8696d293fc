import type { TarItem } from './sandbox-runtime-streams.ts';

const evil = (name: string): TarItem => [{ name, mode: 0o644 }, 'evil\n'];

/**
 * Archives that must be refused. The target directory has a `file`, a `folder` with a file in it, and a `link` to the directory
 * `../outside`.
 */
export const hostileArchives: readonly (readonly [what: string, items: readonly TarItem[]])[] = [
  ['a name with .. that leads up', [evil('../outside/secret')]],
  ['a name with .. after a directory', [evil('folder/../../outside/secret')]],
  ['an absolute name', [evil('/outside/secret')]],
  ['a path through a link in the same archive', [[{ name: 'own', type: 'symlink', linkname: '../outside' }], evil('own/secret')]],
  [
    'a path through a link in the same archive, after a large file',
    [[{ name: 'own', type: 'symlink', linkname: '../outside' }], [{ name: 'large' }, 'x'.repeat(3 << 20)], evil('own/secret')],
  ],
  ['a path through an existing link', [evil('link/secret')]],
  ['a directory below an existing link', [[{ name: 'link/made', type: 'directory' }]]],
  [
    'a path through a hard link to a link',
    [
      [{ name: 'own', type: 'symlink', linkname: '../outside' }],
      [{ name: 'second', type: 'link', linkname: 'own' }],
      evil('second/secret'),
    ],
  ],
  ['a hard link to a file outside', [[{ name: 'hard', type: 'link', linkname: '../outside/secret' }]]],
  ['a hard link through a link', [[{ name: 'hard', type: 'link', linkname: 'link/secret' }], evil('hard')]],
  ['a hard link to a missing file', [[{ name: 'hard', type: 'link', linkname: 'nothing' }]]],
  ['a device', [[{ name: 'null', type: 'character-device', devmajor: 1, devminor: 3 }]]],
  ['a pipe', [[{ name: 'pipe', type: 'fifo' }]]],
  ['a file that replaces a directory', [evil('folder')]],
  ['a link that replaces a directory', [[{ name: 'folder', type: 'symlink', linkname: '../outside' }]]],
  ['a directory that replaces a link', [[{ name: 'link', type: 'directory' }]]],
  ['a path through a file', [evil('file/below')]],
  ['a name that is too long', [evil('n'.repeat(300))]],
];

import type { Header } from 'tar-stream';
import type { TarEntry } from './tar-entries.ts';
import type { TarName } from './tar-names.ts';

/** What can be said of an entry in the package's form. */
export type TarHeader = Partial<Header> & Pick<Header, 'name'>;

/** The last second that the package writes, in 2038. */
const lastSecond = 2 ** 31 - 1;

/** The header of an entry whose name begins with the given parts. */
export function tarHeader(entry: TarEntry, below: TarName): TarHeader {
  const name = [...below, ...entry.parts].join('/');
  const seconds = Math.floor(entry.modifiedAt.getTime() / 1000);
  const mtime = new Date(1000 * Math.min(Math.max(0, seconds), lastSecond));
  const common = { mode: entry.mode, mtime };
  switch (entry.kind) {
    case 'directory':
      return { ...common, name: `${name}/`, type: 'directory' };
    case 'file':
      return { ...common, name, type: 'file', size: entry.size };
    case 'symlink':
      return { ...common, name, type: 'symlink', linkname: entry.target };
    case 'hardlink':
      return { ...common, name, type: 'link', linkname: [...below, ...entry.target].join('/') };
  }
}

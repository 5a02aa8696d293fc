/** One header of a tar, for names that are ours: short and ASCII. */
export interface TarEntry {
  readonly name: string;
  readonly kind: 'file' | 'folder';
  readonly mode: number;
  /** In bytes. */
  readonly size: number;
  /** In seconds since the epoch. */
  readonly mtime: number;
}

const blockBytes = 512;
const largestOctal = 8 ** 11;

/** The header of the entry, in the POSIX form. */
export function tarHeader({ name, kind, mode, size, mtime }: TarEntry): Buffer {
  const header = Buffer.alloc(blockBytes);
  if (name.length > 100) throw new RangeError(`the name is too long for a tar: ${name}`);
  header.write(name, 0, 'ascii');
  header.write(octal(mode, 8), 100, 'ascii');
  header.write(octal(0, 8), 108, 'ascii');
  header.write(octal(0, 8), 116, 'ascii');
  writeSize(header, size);
  header.write(octal(mtime, 12), 136, 'ascii');
  header.write(' '.repeat(8), 148, 'ascii');
  header.write(kind === 'folder' ? '5' : '0', 156, 'ascii');
  header.write('ustar\u000000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 7)}\0 `, 148, 'latin1');
  return header;
}

/** Eight gibibytes and more are written in base 256, as GNU and all that read tars since do. */
function writeSize(header: Buffer, size: number): void {
  if (size < largestOctal) {
    header.write(octal(size, 12), 124, 'ascii');
    return;
  }
  header.writeUInt8(0x80, 124);
  header.writeBigUInt64BE(BigInt(size), 128);
}

function octal(value: number, width: number): string {
  return value.toString(8).padStart(width - 1, '0');
}

/** What fills the last block of a file of this size. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((blockBytes - (size % blockBytes)) % blockBytes);
}

/** The end of a tar. */
export const tarEnd = Buffer.alloc(2 * blockBytes);

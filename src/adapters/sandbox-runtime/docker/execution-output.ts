import { type Duplex, Readable } from 'node:stream';
import { type Leader, parseBeginning } from './shell-scripts.ts';

/** The two outputs of an execution, which the engine sends interleaved over one connection. */
export interface Outputs {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Who leads it; where the connection ended before it began, what was said in its place. */
  readonly begun: Promise<Leader | { readonly refusal: string }>;
  /** Is the command held back, since nobody reads what it wrote? */
  isHeld(): boolean;
  /**
   * Holds nothing back any more. To be called when the command has ended: an engine with output on its hands does not stop the
   * container. What was written is kept, for who reads it yet; what the command left behind and writes on, is kept to a limit.
   */
  release(): void;
}

/** How much is held of an output that nobody reads, about as much as a pipe holds, before both are held back. */
const heldBytes = 64 * 1024;
/** More than an engine and its pipes hold of an execution. */
const releasedBytes = 8 * 1024 * 1024;
/** Longer than the line that an execution begins with, and than what the engine says of one that it can't begin. */
const beginningBytes = 4096;

/** `onHeld` is called each time that the command begins to be held back. */
export function demultiplex(connection: Duplex, onHeld: () => void): Outputs {
  const begun = Promise.withResolvers<Leader | { readonly refusal: string }>();
  const full = new Set<Readable>();
  const over = new Set<Readable>();
  let beginning: Buffer | null = Buffer.alloc(0);
  let released = false;

  const output = (): Readable => {
    const readable = new Readable({
      highWaterMark: heldBytes,
      read() {
        if (full.delete(readable) && full.size === 0) connection.resume();
      },
    });
    return readable;
  };
  const stdout = output();
  const stderr = output();
  const end = (readable: Readable): void => {
    if (over.has(readable)) return;
    over.add(readable);
    readable.push(null);
  };
  const give = (readable: Readable, content: Buffer): void => {
    if (content.length === 0 || over.has(readable)) return;
    if (released && readable.readableLength > releasedBytes) end(readable);
    else if (!readable.push(content)) full.add(readable);
  };
  /** What comes first on the standard output is the line that tells who leads. */
  const begin = (content: Buffer): void => {
    beginning = Buffer.concat([beginning ?? Buffer.alloc(0), content]);
    const lineEnd = beginning.indexOf('\n');
    const leader = lineEnd < 0 ? null : parseBeginning(beginning.toString('latin1', 0, lineEnd));
    if (leader === null) {
      beginning = beginning.subarray(0, beginningBytes);
      return;
    }
    give(stdout, beginning.subarray(lineEnd + 1));
    beginning = null;
    begun.resolve(leader);
  };
  const read = createFrameReader((stream, content) => {
    if (stream === 'stderr') give(stderr, content);
    else if (beginning === null) give(stdout, content);
    else begin(content);
  });

  connection.on('data', (chunk: Buffer) => {
    read(chunk);
    // Until it has begun nobody can read, and nothing is held back.
    if (full.size === 0 || beginning !== null || released) return;
    connection.pause();
    onHeld();
  });
  const close = (): void => {
    begun.resolve({ refusal: beginning?.toString().trim() ?? '' });
    end(stdout);
    end(stderr);
  };
  connection.once('close', close);
  // The engine is done with it, and takes no input any more either.
  connection.once('end', () => connection.destroy());
  connection.on('error', () => {});
  return {
    stdout,
    stderr,
    begun: begun.promise,
    isHeld: () => connection.isPaused(),
    release() {
      released = true;
      connection.resume();
    },
  };
}

const headerBytes = 8;

/**
 * Takes apart what the engine sends of an execution: frames of a byte for the output (2 is the standard error), three of
 * nothing, the length in four, and the content. The content of a frame is given in as many pieces as it arrives in.
 */
function createFrameReader(give: (stream: 'stdout' | 'stderr', content: Buffer) => void): (chunk: Buffer) => void {
  let header = Buffer.alloc(0);
  let missing = 0;
  let stream: 'stdout' | 'stderr' = 'stdout';
  return (chunk) => {
    for (let rest = chunk; rest.length > 0; ) {
      if (missing > 0) {
        const content = rest.subarray(0, missing);
        rest = rest.subarray(content.length);
        missing -= content.length;
        give(stream, content);
        continue;
      }
      const wanted = headerBytes - header.length;
      header = Buffer.concat([header, rest.subarray(0, wanted)]);
      rest = rest.subarray(wanted);
      if (header.length < headerBytes) continue;
      stream = header[0] === 2 ? 'stderr' : 'stdout';
      missing = header.readUInt32BE(4);
      header = Buffer.alloc(0);
    }
  };
}

import { buffer, text } from 'node:stream/consumers';
import { pack, extract, type Header } from 'tar-stream';
import type { Execution } from '../../src/ports/sandbox-runtime.ts';

/** Closes the input of a command, which may have ended. Returns its output and its exit code when it has ended. */
export async function finish(
  { stdin, stdout, stderr, exited }: Execution,
): Promise<{ readonly out: string; readonly err: string; readonly code: number | null }> {
  const [out, err, code] = await Promise.all([text(stdout), text(stderr), exited, stdin.close().catch(() => {})]);
  return { out, err, code };
}

export type TarItem = readonly [header: Partial<Header> & Pick<Header, 'name'>, content?: string | Uint8Array];

/** Returns a tar of the items, which is made while it is read. */
export function tarOf(items: Iterable<TarItem>): ReadableStream<Uint8Array> {
  const tar = pack();
  const add = async (): Promise<void> => {
    for (const [header, content] of items) {
      await new Promise<void>((resolve, reject) => {
        const done = (error?: Error | null): void => (error ? reject(error) : resolve());
        if (content === undefined || header.type === 'symlink' || header.type === 'link') tar.entry({ ...header }, done);
        else tar.entry({ ...header }, content, done);
      });
    }
    tar.finalize();
  };
  tar.on('error', () => {});
  add().catch(() => tar.destroy(new Error('nobody reads on')));
  return ReadableStream.from(
    (async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk;
    })(),
  );
}

/** Returns the entries of a tar by name, in its order. Names of directories have no slash at the end. */
export async function readTar(
  stream: ReadableStream<Uint8Array>,
): Promise<ReadonlyMap<string, { readonly header: Header; readonly content: Buffer }>> {
  const tar = extract();
  const found = new Map<string, { readonly header: Header; readonly content: Buffer }>();
  const reading = (async () => {
    for await (const entry of tar) {
      found.set(entry.header.name.replace(/\/$/, ''), { header: entry.header, content: await buffer(entry) });
    }
  })();
  let goOn: (() => void) | null = null;
  tar.on('drain', () => goOn?.());
  tar.once('close', () => goOn?.());
  for await (const chunk of stream) {
    if (tar.write(Buffer.from(chunk)) || tar.destroying) continue;
    await new Promise<void>((resolve) => {
      goOn = resolve;
    });
  }
  tar.end(null);
  await reading;
  return found;
}

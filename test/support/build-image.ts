import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { GenericContainer } from 'testcontainers';
import { images } from './docker.ts';

const run = promisify(execFile);

/**
 * Builds an image on Debian's base image. `fill` puts files into the build context, and returns the instructions that use them. Images
 * are not deleted: the engine would also delete layers on which the build of another image continues.
 */
export async function buildImage(name: string, fill: (context: string) => Promise<string>): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), 'skep-image-'));
  try {
    await writeFile(join(context, 'Dockerfile'), `FROM ${images.debian}\n${await fill(context)}\n`);
    await GenericContainer.fromDockerfile(context).build(name, { deleteOnExit: false });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/** Adds the Node binary from the packages, which runs the tests, as the file `node`. */
export async function addNode(context: string): Promise<string> {
  await cp(nodeBinary(), join(context, 'node'));
  return 'COPY node /usr/local/bin/node';
}

/** Adds the libraries that Node needs and that Debian's base image may lack. */
export async function addNodeLibraries(context: string): Promise<string> {
  const { stdout } = await run('ldd', [nodeBinary()]);
  const libraries = [...stdout.matchAll(/=> (\S*\/libatomic\.so\S*)/g)].flatMap(([, path]) => path ?? []);
  await Promise.all(libraries.map((path, index) => cp(path, join(context, `library-${index}`), { dereference: true })));
  return [...libraries.map((path, index) => `COPY library-${index} ${path}`), 'RUN ldconfig'].join('\n');
}

function nodeBinary(): string {
  const { resolve } = createRequire(import.meta.url);
  return join(dirname(resolve('node/package.json')), 'bin/node');
}

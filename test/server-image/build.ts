import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { GenericContainer } from 'testcontainers';
import { images } from '../support/docker.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../..');

/** The names of the server's image and of the images that it is built from without a network. */
export const names = { build: 'skep-test/server-build', base: 'skep-test/server-base', server: 'skep-test/server' } as const;

/**
 * Builds the image of the server without a network: with the installed packages, the built dashboard and a base image of the tests.
 */
export async function buildServerImage(): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), 'skep-image-'));
  try {
    await gatherModules(join(context, 'node_modules'));
    await cp(join(project, 'dist/dashboard'), join(context, 'dashboard'), { recursive: true });
    const node = await nodeBinary();
    await cp(node, join(context, 'node'));
    const libraries = await librariesOf(node);
    await Promise.all(libraries.map((path, index) => cp(path, join(context, `library-${index}`), { dereference: true })));
    const copies = libraries.map((path, index) => `COPY library-${index} ${path}\n`).join('');
    await writeFile(join(context, 'base'), `FROM ${images.debian}\n${copies}RUN ldconfig\n`);
    await writeFile(join(context, 'build'), `FROM ${images.debian}\nCOPY node /usr/local/bin/node\nCOPY node_modules /skep/node_modules\nCOPY dashboard /skep/dist/dashboard\n`);
    await GenericContainer.fromDockerfile(context, 'base').build(names.base, { deleteOnExit: false });
    await GenericContainer.fromDockerfile(context, 'build').build(names.build, { deleteOnExit: false });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
  await GenericContainer.fromDockerfile(project).withBuildArgs({ BUILD_IMAGE: names.build, BASE_IMAGE: names.base }).build(names.server, { deleteOnExit: false });
}

/** Copies the server's packages, without development dependencies. */
async function gatherModules(target: string): Promise<void> {
  // npm exits with an error if the folder differs from the manifest, but still prints the list.
  const listed = await run('npm', ['ls', '--all', '--omit=dev', '--parseable'], { cwd: project }).catch((error: { stdout: string }) => error);
  const modules = join(project, 'node_modules');
  const paths = listed.stdout.split('\n').filter((path) => path.startsWith(`${modules}/`)).map((path) => relative(modules, path));
  // Nested packages are copied with their parent.
  for (const path of paths.filter((path) => !path.includes('/node_modules/'))) await cp(join(modules, path), join(target, path), { recursive: true });
}

/** Returns the path of the Node binary from the packages, which runs the tests. */
export async function nodeBinary(): Promise<string> {
  const { resolve } = createRequire(import.meta.url);
  return join(dirname(resolve('node/package.json')), 'bin/node');
}

/** Returns the libraries that Node needs and that Debian's base image may lack. */
export async function librariesOf(binary: string): Promise<string[]> {
  const { stdout } = await run('ldd', [binary]);
  return [...stdout.matchAll(/=> (\S*\/libatomic\.so\S*)/g)].flatMap(([, path]) => path ?? []);
}

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

/** The server's image as the Dockerfile makes it, and the images under it that nothing of outside is needed for. */
export const names = { build: 'skep-test/server-build', base: 'skep-test/server-base', server: 'skep-test/server' } as const;

/**
 * Builds the image of the server. Its dependencies and its dashboard are those of here, and its base is the test's own, so that a
 * machine whose builds reach neither a registry of images nor one of packages can do it too.
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

/** The packages that the server runs on, without those of development. */
async function gatherModules(target: string): Promise<void> {
  // It complains of what is not as the manifest says, and lists all the same.
  const listed = await run('npm', ['ls', '--all', '--omit=dev', '--parseable'], { cwd: project }).catch((error: { stdout: string }) => error);
  const modules = join(project, 'node_modules');
  const paths = listed.stdout.split('\n').filter((path) => path.startsWith(`${modules}/`)).map((path) => relative(modules, path));
  // What lies in another package's folder comes with it.
  for (const path of paths.filter((path) => !path.includes('/node_modules/'))) await cp(join(modules, path), join(target, path), { recursive: true });
}

/** The Node that comes with the packages, whose version the tests run on. */
export async function nodeBinary(): Promise<string> {
  const { resolve } = createRequire(import.meta.url);
  return join(dirname(resolve('node/package.json')), 'bin/node');
}

/** What Node needs besides what every Debian has. */
export async function librariesOf(binary: string): Promise<string[]> {
  const { stdout } = await run('ldd', [binary]);
  return [...stdout.matchAll(/=> (\S*\/libatomic\.so\S*)/g)].flatMap(([, path]) => path ?? []);
}

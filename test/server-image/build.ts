import { execFile } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { GenericContainer } from 'testcontainers';
import { addNode, addNodeLibraries, buildImage } from '../support/build-image.ts';

const run = promisify(execFile);
const project = join(import.meta.dirname, '../..');

/** The names of the server's image and of the images that it is built from without a network. */
export const names = { build: 'skep-test/server-build', base: 'skep-test/server-base', server: 'skep-test/server' } as const;

/**
 * Builds the image of the server without a network: with the installed packages, the built dashboard and a base image of the tests.
 */
export async function buildServerImage(): Promise<void> {
  await buildImage(names.base, addNodeLibraries);
  await buildImage(names.build, async (context) => {
    await addModules(context);
    await cp(join(project, 'dist/dashboard'), join(context, 'dashboard'), { recursive: true });
    return [await addNode(context), 'COPY node_modules /skep/node_modules', 'COPY dashboard /skep/dist/dashboard'].join('\n');
  });
  await GenericContainer.fromDockerfile(project).withBuildArgs({ BUILD_IMAGE: names.build, BASE_IMAGE: names.base }).build(names.server, { deleteOnExit: false });
}

/** Adds the server's packages, without development dependencies, as the folder `node_modules`. */
async function addModules(context: string): Promise<void> {
  // npm exits with an error if the folder differs from the manifest, but still prints the list.
  const listed = await run('npm', ['ls', '--all', '--omit=dev', '--parseable'], { cwd: project }).catch((error: { stdout: string }) => error);
  const paths = listed.stdout.split('\n').filter((path) => path.startsWith(`${project}/node_modules/`)).map((path) => relative(project, path));
  // Nested packages are copied with their parent.
  const outer = paths.filter((path) => path.lastIndexOf('node_modules/') === 0);
  for (const path of outer) await cp(join(project, path), join(context, path), { recursive: true });
}

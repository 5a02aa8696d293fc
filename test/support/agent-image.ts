import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GenericContainer } from 'testcontainers';
import { librariesOf, nodeBinary } from '../server-image/build.ts';
import { images } from './docker.ts';

const scripted = join(import.meta.dirname, '../doubles/acp-agent');

/** Returns the command of the scripted agent in its image. */
export function scriptedAgentCommand(options: object): string[] {
  return ['node', '/opt/acp-agent/main.ts', JSON.stringify(options)];
}

/**
 * Builds an image with the OpenCode binary and a user `agent` with a home folder. Returns the image's name. Images are not deleted: the
 * engine would also delete layers on which the build of another image continues.
 */
export async function buildOpenCodeImage(binary: string): Promise<string> {
  return await build('opencode', 'COPY opencode /usr/local/bin/opencode', async (context) => {
    await cp(binary, join(context, 'opencode'), { dereference: true });
  });
}

/** Builds an image with the scripted agent and the Node binary of the tests. */
export async function buildScriptedImage(): Promise<string> {
  const node = await nodeBinary();
  const libraries = await librariesOf(node);
  const copies = libraries.map((path, index) => `COPY library-${index} ${path}`).join('\n');
  return await build('scripted', `COPY node /usr/local/bin/node\n${copies}\nRUN ldconfig\nCOPY acp-agent /opt/acp-agent`, async (context) => {
    await cp(node, join(context, 'node'));
    await cp(scripted, join(context, 'acp-agent'), { recursive: true });
    await Promise.all(libraries.map((path, index) => cp(path, join(context, `library-${index}`), { dereference: true })));
  });
}

async function build(agent: string, steps: string, fill: (context: string) => Promise<void>): Promise<string> {
  const name = `skep-test/agent-${agent}`;
  const context = await mkdtemp(join(tmpdir(), 'skep-agent-image-'));
  try {
    await fill(context);
    const user = 'RUN useradd --create-home --uid 1000 agent && install --directory --owner=agent /workspace';
    await writeFile(join(context, 'Dockerfile'), `FROM ${images.debian}\n${user}\n${steps}\nUSER agent\n`);
    await GenericContainer.fromDockerfile(context).build(name, { deleteOnExit: false });
  } finally {
    await rm(context, { recursive: true, force: true });
  }
  return name;
}

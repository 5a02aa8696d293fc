import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { addNode, addNodeLibraries, buildImage } from './build-image.ts';

const scripted = join(import.meta.dirname, '../doubles/acp-agent');

/** Returns the command of the scripted agent in its image. */
export function scriptedAgentCommand(options: object): string[] {
  return ['node', '/opt/acp-agent/main.ts', JSON.stringify(options)];
}

/** Builds an image with the OpenCode binary and a user `agent` with a home folder. Returns the image's name. */
export async function buildOpenCodeImage(binary: string): Promise<string> {
  return await build('opencode', async (context) => {
    await cp(binary, join(context, 'opencode'), { dereference: true });
    return 'COPY opencode /usr/local/bin/opencode';
  });
}

/** Builds an image with the scripted agent and the Node binary of the tests. */
export async function buildScriptedImage(): Promise<string> {
  return await build('scripted', async (context) => {
    await cp(scripted, join(context, 'acp-agent'), { recursive: true });
    return [await addNode(context), await addNodeLibraries(context), 'COPY acp-agent /opt/acp-agent'].join('\n');
  });
}

async function build(agent: string, fill: (context: string) => Promise<string>): Promise<string> {
  const name = `skep-test/agent-${agent}`;
  const user = 'RUN useradd --create-home --uid 1000 agent && install --directory --owner=agent /workspace';
  await buildImage(name, async (context) => [user, await fill(context), 'USER agent'].join('\n'));
  return name;
}

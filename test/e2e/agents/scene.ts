import { join } from 'node:path';
import { createRepository, type RepositoryDescription } from '../../contracts/git-repository.ts';
import { startModel, type ModelDouble } from '../../doubles/model/index.ts';
import { createClient, type Client } from '../../support/client.ts';
import { killSandboxes } from '../../support/processes.ts';
import { removeFolder, startServer, temporaryFolder, type Server } from '../../support/server.ts';

/** The API key of the deployment, and the model key of its agents. */
export const key = 'a-static-key-for-the-agents';
export const modelKey = 'the-key-of-the-model-5fb2';

const at = 1_600_000_000;

/** A small repository. Its branch `feature` is one commit ahead. */
export const shop: RepositoryDescription = {
  commits: [
    { id: 'first', at, files: [['README.md', 'The shop sells tea.\n'], ['.skep/microagents/deploy.md', 'How to deploy.\n'], ['src/run', { executable: '#!/bin/sh\n' }]] },
    { id: 'ahead', at: at + 1, files: [['feature.txt', 'new\n']] },
  ],
  branches: { main: 'first', feature: 'ahead' },
};

export interface SceneOptions {
  /** Returns the configuration of the server. Called when the model's address is known. */
  readonly config: (model: ModelDouble, folder: string) => unknown;
  readonly env?: Readonly<Record<string, string>>;
  /** The repository `acme/shop`. Default: {@link shop}. */
  readonly repository?: RepositoryDescription;
  /** The address on which the model listens. */
  readonly modelHost?: string;
}

/** A server process with a model and a repository `acme/shop`. */
export interface Scene {
  readonly folder: string;
  readonly dataDir: string;
  readonly model: ModelDouble;
  readonly call: Client;
  readonly server: Server;
  /** Kills the server, and starts it again with the same data folder. */
  crash(): Promise<void>;
  /** Ends everything. `clear` removes the sandboxes after the server's end. Default: kills their processes. */
  close(clear?: (dataDir: string) => Promise<void> | void): Promise<void>;
}

export async function createScene({ config, env = {}, modelHost, repository = shop }: SceneOptions): Promise<Scene> {
  const folder = await temporaryFolder();
  const dataDir = join(folder, 'data');
  await createRepository(join(folder, 'git/acme/shop.git'), repository);
  const model = await startModel(modelHost === undefined ? {} : { host: modelHost });
  const start = (): Promise<Server> =>
    startServer({
      dataDir,
      config: config(model, folder),
      env: { SKEP_API_KEY: key, SKEP_LOCAL_GIT_ROOT: join(folder, 'git'), MODEL_API_KEY: modelKey, ...env },
    });
  let server: Server;
  try {
    server = await start();
  } catch (error) {
    await model.close();
    await removeFolder(folder);
    throw error;
  }
  return {
    folder,
    dataDir,
    model,
    get call() {
      return createClient(server.url, key);
    },
    get server() {
      return server;
    },
    async crash() {
      await server.kill();
      server = await start();
    },
    async close(clear = killSandboxes) {
      try {
        await server.stop();
      } finally {
        await clear(dataDir);
        await model.close();
        await removeFolder(folder);
      }
    },
  };
}

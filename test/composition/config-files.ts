import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { ConfigError } from '../../src/composition/config/config-error.ts';
import { removeFolder, temporaryFolder } from '../support/server.ts';

/** Creates a folder for the tests of one test file, and configuration files in it. */
export function configFiles() {
  let folder = '';
  let files = 0;
  beforeAll(async () => void (folder = await temporaryFolder()));
  afterAll(async () => await removeFolder(folder));
  const pathOf = (name: string): string => join(folder, name);
  return {
    pathOf,
    /** Writes a file, and returns its path. */
    file: (text: string): string => {
      const path = pathOf(`skep-${(files += 1)}.yaml`);
      writeFileSync(path, text);
      return path;
    },
  };
}

/** Returns the error with which the configuration is refused. */
export function refusalOf(env: Readonly<Record<string, string>>): ConfigError {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the configuration was taken');
}

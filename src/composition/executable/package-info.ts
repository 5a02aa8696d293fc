import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const manifestSchema = z.object({ name: z.string(), version: z.string() });

/** The package's own version. The manifest is looked for upwards, since the build lies one folder deeper than the source. */
export function packageVersion(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const manifest = readManifest(folder);
    if (manifest?.name === 'skep') return manifest.version;
    if (folder === dirname(folder)) return 'unknown';
  }
}

/** How a person calls the executable: a checkout has no command of its own. */
export function commandName(): string {
  return import.meta.url.endsWith('.ts') ? 'npm run -s skep --' : 'skep';
}

function readManifest(folder: string): z.output<typeof manifestSchema> | null {
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')));
  } catch {
    return null;
  }
}

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const manifestSchema = z.object({ name: z.string(), version: z.string() });

/** Returns the package's version. The manifest is in a parent folder; the build is one folder deeper than the source. */
export function packageVersion(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const manifest = readManifest(folder);
    if (manifest?.name === 'skep') return manifest.version;
    if (folder === dirname(folder)) return 'unknown';
  }
}

/** Returns the command that runs the executable. A checkout has no command of its own. */
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

import { readFileSync } from 'node:fs';
// An older Node could not even load a named import of it, so nobody would read which version Skep needs.
import module from 'node:module';
import { z } from 'zod';

const manifestSchema = z.object({ version: z.string() });

export function packageVersion(): string {
  return manifestSchema.parse(JSON.parse(readFileSync(module.findPackageJSON(import.meta.url) ?? '', 'utf8'))).version;
}

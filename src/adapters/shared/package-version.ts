import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { z } from 'zod';

const manifestSchema = z.object({ version: z.string() });

export function packageVersion(): string {
  return manifestSchema.parse(JSON.parse(readFileSync(findPackageJSON(import.meta.url) ?? '', 'utf8'))).version;
}

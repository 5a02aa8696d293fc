import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { PartCheck } from '../application/skep.ts';
import type { SkepConfig } from './config/config.ts';
import { commandName, packageVersion } from './package-info.ts';

export interface FirstScreen {
  readonly config: SkepConfig;
  /** Where clients reach it. */
  readonly url: string;
  readonly parts: readonly PartCheck[];
  /** The key that was made at this start, which is shown this once. */
  readonly madeKey: string | null;
}

/** What a person sees first: where it listens, which adapters serve, the key if one was made, and commands to try. */
export function firstScreen({ config, url, parts, madeKey }: FirstScreen): string {
  const width = Math.max('api-keys'.length, ...parts.map(({ adapter }) => adapter.length));
  const lines = [
    '',
    `Skep ${packageVersion()} listens on ${url}   (reference: ${url}/docs)`,
    '',
    ...parts.map(({ part, adapter, ok, detail }) => `  ${part.padEnd(8)} ${adapter.padEnd(width)} ${ok ? 'ok ' : 'NOT OK'} ${detail}`),
    `  ${'auth'.padEnd(8)} ${'api-keys'.padEnd(width)} ok  ${config.apiKey === undefined ? 'keys of the store' : 'SKEP_API_KEY and keys of the store'}`,
    '',
    ...keyLines(config, madeKey),
    '',
    'Try:',
    '',
    ...curls(config, url).map((line) => `  ${line}`),
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function keyLines(config: SkepConfig, madeKey: string | null): string[] {
  if (config.apiKey !== undefined) return ['The key is the one in SKEP_API_KEY; the commands below take it from there.'];
  if (madeKey !== null) return ['An API key was made; it is shown this once, and only its hash is kept:', '', `  export SKEP_API_KEY=${madeKey}`];
  return [`The key was shown at the first start. Lost? Make another: ${commandName()} keys create <name>`, '', '  export SKEP_API_KEY=<your key>'];
}

function curls(config: SkepConfig, url: string): string[] {
  const curl = 'curl -H "X-Session-API-Key: $SKEP_API_KEY"';
  return [
    `${curl} ${url}/api/user/repository/${exampleRepository(config)}/microagents`,
    `${curl} -X POST ${url}/api/v1/sandboxes`,
    `${curl} ${url}/api/v1/sandboxes/search`,
    `${curl} -X POST ${url}/api/v1/app-conversations -H 'Content-Type: application/json' -d '{"title":"Hello"}'`,
  ];
}

/** A repository that can be listed as printed, where there is one at hand. */
function exampleRepository({ gitProviders, localGitRoot }: SkepConfig): string {
  const root = resolve(localGitRoot ?? process.cwd());
  return gitProviders[0] === 'local' && existsSync(join(root, '.git')) ? encodeURIComponent(basename(root)) : 'OWNER/NAME';
}

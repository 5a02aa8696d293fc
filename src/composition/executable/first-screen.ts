import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { PartCheck } from '../../application/skep.ts';
import type { SkepConfig } from '../config/config.ts';
import { type FirstKey, keyLine, type KeyState } from './api-key-state.ts';
import { commandName, packageVersion } from './package-info.ts';

export interface FirstScreen {
  readonly config: SkepConfig;
  /** Where clients reach it. */
  readonly url: string;
  readonly deps: readonly PartCheck[];
  /** Where the commands of the screen have their key from; one that was made at this start is shown this once. */
  readonly key: FirstKey | KeyState;
}

/** What a person sees first: where it listens, which adapters serve, the key if one was made, and commands to try. */
export function firstScreen({ config, url, deps, key }: FirstScreen): string {
  const width = Math.max('api-keys'.length, ...deps.map(({ adapter }) => adapter.length));
  const lines = [
    '',
    `Skep ${packageVersion()} listens on ${url}   (reference: ${url}/docs)`,
    '',
    ...deps.map(({ part, adapter, ok, detail }) => `  ${part.padEnd(8)} ${adapter.padEnd(width)} ${ok ? 'ok ' : 'NOT OK'} ${detail}`),
    `  ${'auth'.padEnd(8)} ${'api-keys'.padEnd(width)} ${key.kind === 'refused' ? 'NOT OK' : 'ok '} ${config.apiKey === undefined ? 'keys of the store' : 'SKEP_API_KEY and keys of the store'}`,
    '',
    ...keyLines(key),
    '',
    'Try:',
    '',
    ...curls(config, url).map((line) => `  ${line}`),
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function keyLines(key: FirstKey | KeyState): string[] {
  const another = `${commandName()} keys create <name>`;
  switch (key.kind) {
    case 'made':
      return ['An API key was made; it is shown this once, and only its hash is kept:', '', `  export SKEP_API_KEY=${key.key}`];
    case 'kept':
      return [`The key was shown at the first start. Lost? Make another: ${another}`, '', '  export SKEP_API_KEY=<your key>'];
    case 'none valid':
      return [`WARNING: every key of the store was revoked or has expired. Make another: ${another}`, '', '  export SKEP_API_KEY=<your key>'];
    case 'static':
    case 'stray':
    case 'stored':
    case 'refused':
      return ownKeyLines(key, another);
  }
}

/** Of the key that is set. */
function ownKeyLines(key: KeyState, another: string): string[] {
  const { state, text } = keyLine(key);
  const told = `${text[0]?.toUpperCase()}${text.slice(1)}.`;
  if (state === 'not ok') return [`WARNING: ${told}`, `Make another, and set it: ${another}`, '', '  export SKEP_API_KEY=<your key>'];
  return [state === 'note' ? `WARNING: ${told}` : told, 'The commands below take it from there.'];
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

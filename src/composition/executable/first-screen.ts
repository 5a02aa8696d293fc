import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { PartCheck } from '../../application/skep.ts';
import type { SkepConfig } from '../config/file-schema.ts';
import { type FirstKey, keyLine, type KeyState } from './api-key-state.ts';
import { commandName, packageVersion } from './package-info.ts';

export interface FirstScreen {
  readonly config: SkepConfig;
  /** The address for clients. */
  readonly url: string;
  readonly parts: readonly PartCheck[];
  /** The key for the commands of the screen. One that was made at this start is shown only now. */
  readonly key: FirstKey | KeyState;
}

/** Returns what a person sees first: the address, the adapters, the key if one was made, and commands to try. */
export function firstScreen({ config, url, parts, key }: FirstScreen): string {
  const width = Math.max('api-keys'.length, ...parts.map(({ adapter }) => adapter.length));
  const row = (part: string, adapter: string, ok: boolean, detail: string): string =>
    `  ${part.padEnd(8)} ${adapter.padEnd(width)} ${ok ? 'ok ' : 'NOT OK'} ${detail}`;
  const keys = config.apiKey === undefined ? 'keys of the store' : 'SKEP_API_KEY and keys of the store';
  const lines = [
    '',
    `Skep ${packageVersion()} listens on ${url}   (reference: ${url}/docs)`,
    '',
    ...parts.map(({ part, adapter, ok, detail }) => row(part, adapter, ok, detail)),
    row('auth', 'api-keys', key.kind !== 'refused', keys),
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

const exportKey = ['', '  export SKEP_API_KEY=<your key>'];

function keyLines(key: FirstKey | KeyState): string[] {
  const another = `${commandName()} keys create <name>`;
  switch (key.kind) {
    case 'made':
      return ['An API key was made; it is shown this once, and only its hash is kept:', '', `  export SKEP_API_KEY=${key.key}`];
    case 'kept':
      return [`The key was shown at the first start. Lost? Make another: ${another}`, ...exportKey];
    case 'none valid':
      return [`WARNING: every key of the store was revoked or has expired. Make another: ${another}`, ...exportKey];
    case 'static':
    case 'stray':
    case 'stored':
    case 'refused':
      return ownKeyLines(key, another);
  }
}

/** Returns the lines about the key that is set. */
function ownKeyLines(key: KeyState, another: string): string[] {
  const { state, text } = keyLine(key);
  const sentence = `${text[0]?.toUpperCase()}${text.slice(1)}.`;
  if (state === 'not ok') return [`WARNING: ${sentence}`, `Make another, and set it: ${another}`, ...exportKey];
  return [state === 'note' ? `WARNING: ${sentence}` : sentence, 'The commands below take it from there.'];
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

/** Returns a repository that exists, if the working directory is one. */
function exampleRepository({ gitProviders, localGitRoot }: SkepConfig): string {
  const root = resolve(localGitRoot ?? process.cwd());
  return gitProviders[0] === 'local' && existsSync(join(root, '.git')) ? encodeURIComponent(basename(root)) : 'OWNER/NAME';
}

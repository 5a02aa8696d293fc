import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { packageVersion } from '../../adapters/shared/package-version.ts';
import type { ComponentCheck } from '../../application/skep.ts';
import { commandName } from '../../client/command-name.ts';
import { isFailureOf } from '../../domain/failure.ts';
import { isKeyValid } from '../../domain/api-key.ts';
import type { ApiKeyStore } from '../../ports/api-key-store.ts';
import type { Auth } from '../../ports/auth.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import { isEveryAddress } from '../config/environment-warnings.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { type Finding, finding } from './doctor-findings.ts';

export function firstScreen(config: SkepConfig, url: string, parts: readonly ComponentCheck[], keyText: readonly string[]): string {
  const width = Math.max(...parts.map(({ adapter }) => adapter.length));
  const others = isEveryAddress(config.host) ? ' and every other address of this machine' : '';
  const lines = [
    '',
    `Skep ${packageVersion()} listens on ${url}${others}   (reference: ${url}/docs)`,
    '',
    ...parts.map(({ part, adapter, ok, detail }) => `  ${part.padEnd(8)} ${adapter.padEnd(width)} ${ok ? 'ok ' : 'NOT OK'} ${detail}`),
    '',
    ...keyText,
    '',
    'Try:',
    '',
    ...curlExamples(config, url).map((line) => `  ${line}`),
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function curlExamples(config: SkepConfig, url: string): string[] {
  const curl = 'curl -H "X-Session-API-Key: $SKEP_API_KEY"';
  return [
    `${curl} ${url}/api/user/repository/${exampleRepository(config)}/microagents`,
    `${curl} -X POST ${url}/api/v1/sandboxes`,
    `${curl} ${url}/api/v1/sandboxes/search`,
    `${curl} -X POST ${url}/api/v1/app-conversations -H 'Content-Type: application/json' -d '{"title":"Hello"}'`,
  ];
}

/** Returns the name of an existing repository if the working directory is one. */
function exampleRepository({ gitProviders, localGitRoot }: SkepConfig): string {
  const root = resolve(localGitRoot ?? process.cwd());
  return gitProviders[0] === 'local' && existsSync(join(root, '.git')) ? encodeURIComponent(basename(root)) : 'OWNER/NAME';
}

export async function checkKey(apiKey: string, auth: Auth): Promise<Finding> {
  try {
    const { keyName, access } = await auth.authenticate(apiKey);
    if (keyName !== 'SKEP_API_KEY') {
      return finding(access === 'read' ? 'api_key_read_only' : 'api_key_stored', { name: keyName, access });
    }
    return finding(apiKey.startsWith('skep_') ? 'api_key_not_of_store' : 'api_key_static', {});
  } catch (error) {
    if (!isFailureOf(error, 'unauthorized')) throw error;
    return finding('api_key_invalid', {});
  }
}

const createKeyCommand = `${commandName} keys create <name>`;
const exportKey = ['', '  export SKEP_API_KEY=<your key>'];

export function setKeyText({ state, message }: Pick<Finding, 'state' | 'message'>): readonly string[] {
  const sentence = `${message[0]?.toUpperCase()}${message.slice(1)}.`;
  if (state === 'failed') return [`WARNING: ${sentence}`, `Create a new key, and set it: ${createKeyCommand}`, ...exportKey];
  return [state === 'warning' ? `WARNING: ${sentence}` : sentence, 'The commands below use it.'];
}

/** Returns the first screen's lines about keys if no static key is set. Creates a key if there never was one. */
export async function storedKeyText(
  keys: ApiKeyStore, deps: { readonly clock: Clock; readonly random: Random },
): Promise<readonly string[]> {
  const records = await keys.list();
  if (records.some((record) => isKeyValid(record, deps.clock.now()))) {
    return [`The key was shown at the first start. If it is lost, create a new one: ${createKeyCommand}`, ...exportKey];
  }
  if (records.length > 0) {
    return [`WARNING: All keys of the store are revoked or expired. Create a new one: ${createKeyCommand}`, ...exportKey];
  }
  const { createApiKeys } = await import('../../adapters/auth/api-keys/index.ts');
  const { key } = await createApiKeys({ ...deps, keys }).create({ name: 'first' });
  return ['This is your API key. It is not shown again: only its hash is stored.', '', `  export SKEP_API_KEY=${key}`];
}

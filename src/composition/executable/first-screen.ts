import { existsSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { packageVersion } from '../../adapters/shared/package-version.ts';
import type { PartCheck } from '../../application/skep.ts';
import { isEveryAddress } from '../config/environment-warnings.ts';
import type { SkepConfig } from '../config/file-schema.ts';

/** Returns what a person sees first: the address for clients, the adapters, what to know about the key, and commands to try. */
export function firstScreen(config: SkepConfig, url: string, parts: readonly PartCheck[], keyText: readonly string[]): string {
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
    ...curls(config, url).map((line) => `  ${line}`),
    '',
  ];
  return `${lines.join('\n')}\n`;
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

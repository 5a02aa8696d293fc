import { type JsonOption, localUrl, print } from '../../adapters/cli/console.ts';
import { dashboardFolder } from '../../adapters/http/dashboard.ts';
import { commandName } from '../../client/command-name.ts';
import type { KeyAccess } from '../../domain/principal.ts';
import type { ApiKeys } from '../../ports/api-keys.ts';
import type { SkepConfig } from '../config/config-schema.ts';
import { withKeys } from './key-commands.ts';

export interface DashboardLinkOptions extends JsonOption {
  readonly user: string;
  readonly access: KeyAccess;
}

/** Creates a login link. The code is in the fragment, which browsers do not send. */
async function createLink(keys: ApiKeys, url: string, userId: string, access: KeyAccess) {
  const { code, expiresAt } = await keys.createLoginCode({ userId, access });
  return { url: `${url}/#/login/${code}`, expiresAt };
}

/** Returns the reason why the server has no dashboard; null if it has one. */
function whyNoDashboard({ dashboard }: SkepConfig): string | null {
  if (dashboard === 'off') return 'The dashboard is off (SKEP_DASHBOARD).';
  return dashboardFolder() === null ? 'The dashboard was not built; build it with: npm run build' : null;
}

/** Returns the first screen's lines about the dashboard. Only a terminal gets the link, because others may read a log. */
export async function dashboardText(config: SkepConfig, url: string, keys: ApiKeys | undefined): Promise<readonly string[]> {
  if (keys === undefined || whyNoDashboard(config) !== null) return [];
  if (!process.stdout.isTTY) return [`The dashboard: ${url}/. For a link that logs in: ${commandName} dashboard`, ''];
  const link = await createLink(keys, url, 'default', 'admin');
  return [`The dashboard. The link works once, within ten minutes. For a new link: ${commandName} dashboard`, '', `  ${link.url}`, ''];
}

/** Prints the link alone on standard output, or JSON with its expiry. */
export async function printDashboardLink(env: NodeJS.ProcessEnv, options: DashboardLinkOptions): Promise<number> {
  return await withKeys(env, async (keys, config) => {
    const none = whyNoDashboard(config);
    if (none !== null) {
      process.stderr.write(`${none}\n`);
      return 1;
    }
    const { user, access } = options;
    const link = await createLink(keys, config.publicUrl ?? localUrl(config.host, config.port), user, access);
    process.stderr.write(`The link logs in as ${user} (${access}). It works once, within ten minutes:\n`);
    print(options, { url: link.url, user, access, expires: new Date(link.expiresAt).toISOString() }, `${link.url}\n`);
    return 0;
  });
}

import type { SqliteLook } from '../../adapters/store/sqlite/index.ts';
import type { SkepConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { toDeployment } from '../config/deployment.ts';
import { configText } from './doctor/config-text.ts';
import { note, notOk, printed, type Line } from './doctor/line.ts';
import { addressLine, gitLines, secretLines, storeLines } from './doctor/other-lines.ts';
import { runtimeLines } from './doctor/runtime-lines.ts';
import { explain } from './explain.ts';
import { packageVersion } from './package-info.ts';
import type { Environment } from '../config/environment.ts';

/** Says what is configured and what answers; 1 when something does not. Changes nothing. */
export async function doctor(env: Environment): Promise<number> {
  process.stdout.write(`Skep ${packageVersion()} on Node ${process.versions.node}, ${process.platform}\n\n`);
  let config: SkepConfig;
  try {
    config = loadConfig(env);
  } catch (error) {
    process.stdout.write(`${explain(error)}\n`);
    return 1;
  }
  process.stdout.write(`Configuration\n${configText(config, env)}\n`);
  const lines = await checkLines(config, env);
  process.stdout.write(`Checks\n${lines.map(printed).join('')}`);
  return lines.some(({ state }) => state === 'not ok') ? 1 : 0;
}

/** Asks every part. The store may belong to a server that runs, or be of another version, so it is only looked into. */
async function checkLines(config: SkepConfig, env: Environment): Promise<Line[]> {
  await using open = new AsyncDisposableStack();
  let look: SqliteLook = { kind: 'none' };
  const lines = config.warnings.map((text) => note(`warning: ${text}`));
  const part = async (name: string, look: () => Promise<Line | Line[]>): Promise<void> => {
    try {
      lines.push(...[await look()].flat());
    } catch (error) {
      lines.push(notOk(`${name}: ${explain(error)}`));
    }
  };
  await part('store', async () => {
    const { lookIntoSqlite } = await import('../../adapters/store/sqlite/index.ts');
    look = await lookIntoSqlite(config.dataDir);
    if (look.kind === 'current') open.adopt(look.store, (opened) => opened.close());
    return await storeLines(config, look);
  });
  await part('git', async () => await gitLines(toDeployment(config, silent)));
  await part('runtime', async () => await runtimeLines(config, { hasSandboxes: await hasSandboxes(look) }));
  lines.push(...secretLines(config, env), await addressLine(config));
  return lines;
}

async function hasSandboxes(look: SqliteLook): Promise<boolean> {
  if (look.kind === 'current') return (await look.store.sandboxes.scan(null, 1)).length > 0;
  return look.kind === 'older' && look.hasSandboxes;
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

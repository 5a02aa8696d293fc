import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe } from 'vitest';

const run = promisify(execFile);
const version = '1.18.33';
const cache = join(import.meta.dirname, '../../node_modules/.cache/skep/opencode');
const folder = join(cache, version);

/**
 * Runs a suite with OpenCode, a real coding agent, which is installed from npm the first time. `binary` is its path. If it can't be
 * installed or run, skips the suite with a warning, or throws if `SKEP_REQUIRE_OPENCODE=1`.
 */
export function describeWithOpenCode(name: string, suite: (binary: string) => void): void {
  if (found.binary !== null) {
    const { binary } = found;
    describe(name, () => suite(binary));
    return;
  }
  if (process.env['SKEP_REQUIRE_OPENCODE'] === '1') throw new Error(`${name}: ${found.why}, and SKEP_REQUIRE_OPENCODE=1 asks for it`);
  console.warn(`SKIPPED ${name}: ${found.why}. \`npm install opencode-ai@${version}\` has to work on this machine.`);
  describe.skip(name, () => suite(''));
}

export interface OpenCodeRun {
  /** The URL of the model for the agent. Ends in `/v1`. */
  readonly modelUrl: string;
  /** OpenCode's permission setting for editing files and running commands. */
  readonly permission?: 'allow' | 'ask' | 'deny';
}

/** Returns the content of an `opencode.json` with one model, whose key is the value of `MODEL_API_KEY`. */
export function openCodeConfig({ modelUrl, permission = 'ask' }: OpenCodeRun): object {
  const stub = { name: 'Stub', tool_call: true, limit: { context: 100_000, output: 10_000 } };
  const options = { baseURL: modelUrl, apiKey: '{env:MODEL_API_KEY}' };
  return {
    $schema: 'https://opencode.ai/config.json',
    autoupdate: false,
    share: 'disabled',
    provider: { stub: { npm: '@ai-sdk/openai-compatible', name: 'Stub', options, models: { stub } } },
    enabled_providers: ['stub'],
    model: 'stub/stub',
    small_model: 'stub/stub',
    permission: { edit: permission, bash: permission },
  };
}

/**
 * Returns the environment of OpenCode's process. `PATH`, `HOME` (a writable folder) and `MODEL_API_KEY` must be added. With it, OpenCode
 * downloads nothing.
 */
export function openCodeEnv(run: OpenCodeRun): Record<string, string> {
  return {
    OPENCODE_CONFIG_CONTENT: JSON.stringify(openCodeConfig(run)),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    npm_config_offline: 'true',
  };
}

/** Returns the first binary that runs here. There is also a package for old processors. */
async function firstThatRuns(): Promise<string> {
  const platform = `opencode-${process.platform}-${process.arch}`;
  const problems: string[] = [];
  for (const name of [platform, `${platform}-baseline`]) {
    const binary = join(folder, 'node_modules', name, 'bin/opencode');
    try {
      await run(binary, ['--version'], { timeout: 60_000 });
      return binary;
    } catch (error) {
      problems.push(String(error));
    }
  }
  throw new Error(problems.join('; '));
}

/** Installs into a temporary folder first, so that no other process sees an incomplete installation. */
async function install(): Promise<void> {
  await mkdir(cache, { recursive: true });
  const temporary = await mkdtemp(join(cache, 'install-'));
  try {
    const args = ['install', '--prefix', temporary, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', `opencode-ai@${version}`];
    await run('npm', args, { cwd: temporary, timeout: 180_000 });
    await rename(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another worker may have installed it first.
    if (!existsSync(folder)) throw error;
  }
}

async function find(): Promise<{ readonly binary: string } | { readonly binary: null; readonly why: string }> {
  try {
    if (!existsSync(folder)) await install();
    return { binary: await firstThatRuns() };
  } catch (error) {
    return { binary: null, why: `opencode-ai ${version} can't be installed or run: ${String(error).split('\n', 1)[0]}` };
  }
}

const found = await find();

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';

const root = import.meta.dirname;
const dist = join(root, 'dist');
const dashboard = join(dist, 'dashboard');
const remove = (path: string): void => rmSync(path, { recursive: true, force: true });

// With any other value, for example that of a test runner, Vite builds for development.
process.env['NODE_ENV'] = 'production';

/** Browsers of 2024 and newer. */
const browsers = ['chrome125', 'firefox126', 'safari17.5'];

/**
 * Builds the page for browsers. Its URLs are relative, so it can be served below any prefix. A complete build replaces the previous one at
 * once, because a server may be serving the files.
 */
async function buildDashboard(): Promise<void> {
  const outDir = join(dist, `dashboard-${process.pid}`);
  await build({
    root: join(root, 'src/dashboard'),
    configFile: false,
    base: './',
    logLevel: 'warn',
    // No `data:` URLs: the page's content security policy allows them only for images.
    build: { outDir, emptyOutDir: true, assetsInlineLimit: 0, target: browsers, modulePreload: { polyfill: false } },
  });
  const before = `${outDir}-before`;
  if (existsSync(dashboard)) renameSync(dashboard, before);
  renameSync(outDir, dashboard);
  remove(before);
}

const [, , part] = process.argv;
if (part !== 'dashboard') {
  for (const folder of ['src', 'test']) remove(join(dist, folder));
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
  chmodSync(join(dist, 'src/composition/executable/main.js'), 0o755);
}
if (part !== 'package') await buildDashboard();

import { execFileSync } from 'node:child_process';
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';

const root = import.meta.dirname;

/** Those of 2024 and newer. */
const browsers = ['chrome125', 'firefox126', 'safari17.5'];

/** The page for browsers. Addresses in it are relative, so it can be served below any prefix. */
async function buildDashboard(): Promise<void> {
  await build({
    root: join(root, 'src/dashboard'),
    configFile: false,
    base: './',
    logLevel: 'warn',
    // Files that are written into the page's code as data: addresses would need a wider policy.
    build: { outDir: join(root, 'dist/dashboard'), emptyOutDir: true, assetsInlineLimit: 0, target: browsers, modulePreload: { polyfill: false } },
  });
}

if (process.argv[2] !== 'dashboard') {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
  chmodSync(join(root, 'dist/src/composition/executable/main.js'), 0o755);
}
await buildDashboard();

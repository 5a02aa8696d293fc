#!/usr/bin/env node
import { whyNodeIsTooOld } from '../node-version.ts';

// Checked before any other module is loaded.
const tooOld = whyNodeIsTooOld();
if (tooOld !== null) {
  process.stderr.write(`skep: ${tooOld}\n`);
  process.exitCode = 1;
} else {
  const [{ enableCompileCache }, { join }, { default: envPaths }] = await Promise.all([
    import('node:module'), import('node:path'), import('env-paths'),
  ]);
  // Almost halves the time of the next start. If the folder is not writable, nothing is cached. Node's variables NODE_COMPILE_CACHE and
  // NODE_DISABLE_COMPILE_CACHE take precedence.
  enableCompileCache(join(envPaths('skep', { suffix: '' }).cache, 'compiled'));
  const { main } = await import('./program.ts');
  process.exitCode = await main(process.argv);
}

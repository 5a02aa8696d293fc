#!/usr/bin/env node
import { whyNodeIsTooOld } from '../node-version.ts';

// Checked before any other module is loaded.
const tooOld = whyNodeIsTooOld();
if (tooOld !== null) {
  process.stderr.write(`skep: ${tooOld}\n`);
  process.exitCode = 1;
} else {
  const [{ enableCompileCache }, { join }, { setFlagsFromString }, { default: envPaths }] = await Promise.all([
    import('node:module'), import('node:path'), import('node:v8'), import('env-paths'),
  ]);
  // Almost halves the time of the next start. If the folder is not writable, nothing is cached. Node's variables NODE_COMPILE_CACHE and
  // NODE_DISABLE_COMPILE_CACHE take precedence.
  enableCompileCache(join(envPaths('skep', { suffix: '' }).cache, 'compiled'));
  const { main } = await import('./program.ts');
  // Files pass in buffers outside of the heap. By default, V8 collects the whole heap after every 64 MB of them, which takes three times as
  // long as passing them on. With this flag, most buffers are freed with the young part of the heap. It is set after the program is loaded,
  // since code that Node has compiled before is of no use with other flags.
  setFlagsFromString('--external-memory-accounted-in-global-limit');
  process.exitCode = await main(process.argv);
}

#!/usr/bin/env node
/** The oldest version of Node that runs the program. It is checked before anything else is loaded. */
const oldest = 24;

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(`skep: needs Node ${oldest} or newer, and this is ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  const [{ enableCompileCache }, { join }, { default: envPaths }] = await Promise.all([
    import('node:module'), import('node:path'), import('env-paths'),
  ]);
  // The next start takes little more than half as long. If the folder can't be written, nothing is cached. Node's variables
  // NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE come first.
  enableCompileCache(join(envPaths('skep', { suffix: '' }).cache, 'compiled'));
  const { main } = await import('./program.ts');
  process.exitCode = await main(process.argv);
}

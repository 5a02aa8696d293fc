#!/usr/bin/env node
/** The oldest version of Node that runs the program. It is checked before anything else is loaded. */
const oldest = 24;

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(`skep: needs Node ${oldest} or newer, and this is ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  const { keepCompiled } = await import('./compile-cache.ts');
  keepCompiled();
  const { main } = await import('./program.ts');
  process.exitCode = await main(process.argv);
}

#!/usr/bin/env node
/** The oldest Node that has what the program is written in; said before anything of it is loaded. */
const oldest = 24;

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(`skep: it needs Node ${oldest} or newer, and this is ${process.versions.node}.\n`);
  process.exitCode = 1;
} else {
  const { keepCompiled } = await import('./compile-cache.ts');
  keepCompiled();
  const { main } = await import('./cli.ts');
  process.exitCode = await main(process.argv);
}

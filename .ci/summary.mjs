// summary.mjs <report> <exit code of the tests> [failed stage...]: prints the failed and the skipped tests, and the counts in
// the last line. Exits with 0 only if all tests were run and none failed.
import { existsSync, readFileSync } from 'node:fs';

const [report, code, ...stages] = process.argv.slice(2);
const text = existsSync(report) ? readFileSync(report, 'utf8') : '';
// If the run was killed, the last line can be incomplete.
const lines = text.split('\n').flatMap((line) => {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
});
const of = (kind) => lines.filter((line) => line.kind === kind);
const tests = of('test');
const passed = tests.filter(({ state }) => state === 'passed');
const skipped = tests.filter(({ state }) => state === 'skipped');
const failures = [
  ...stages.map((name) => ({ file: name, name: '', messages: ['see above'] })),
  ...tests.filter(({ state }) => state === 'failed'),
  ...of('error'),
];

const done = new Set(of('done').map(({ file }) => file));
for (const { file } of of('queued')) if (!done.has(file)) failures.push({ file, name: '', messages: ['it did not finish'] });
if (of('end').length === 0 && code !== 'none') failures.push({ file: 'the test run', name: '', messages: [`it did not finish (exit code ${code})`] });
else if (code !== '0' && code !== 'none' && failures.length === 0) failures.push({ file: 'the test run', name: '', messages: [`exit code ${code}`] });
if (passed.length === 0 && failures.length === 0) failures.push({ file: 'the test run', name: '', messages: ['no test was run'] });

const title = ({ file, name }) => [file, name].filter((part) => part !== '').join(' > ');
if (skipped.length > 0) console.log(`\nskipped:\n${skipped.map((one) => `  ${title(one)}`).join('\n')}`);
if (failures.length > 0) console.log(`\nfailed:\n${failures.map((one) => `  ${title(one)}\n${(one.messages ?? []).join('\n').replace(/^/gm, '      ')}`).join('\n')}`);
console.log(`\n${passed.length} passed, ${failures.length} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`);
process.exitCode = failures.length > 0 ? 1 : 0;

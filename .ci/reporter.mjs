// Writes each result at once as a line of JSON, so the counts are correct even if the run is interrupted. summary.mjs reads
// the file.
import { appendFileSync } from 'node:fs';

const path = process.env.SKEP_CI_REPORT;
const write = (line) => appendFileSync(path, `${JSON.stringify(line)}\n`);
const messages = (errors) => (errors ?? []).map(({ name, message, stack }) => stack?.split('\n').filter((line) => !/\/node_modules\/@?vitest\//.test(line)).join('\n') ?? `${name}: ${message}`);
const fileOf = (one) => one.module?.relativeModuleId ?? one.relativeModuleId;

export default class CiReporter {
  onTestModuleQueued(module) {
    write({ kind: 'queued', file: fileOf(module) });
  }

  onTestCaseResult(test) {
    const { state, errors } = test.result();
    write({ kind: 'test', state, file: fileOf(test), name: test.fullName, ...(state === 'failed' && { messages: messages(errors) }) });
  }

  // Reports a failed hook, because its tests are only reported as skipped.
  onTestSuiteResult(suite) {
    const errors = suite.errors();
    if (errors.length > 0) write({ kind: 'error', file: fileOf(suite), name: suite.fullName, messages: messages(errors) });
  }

  onTestModuleEnd(module) {
    const errors = module.errors();
    if (errors.length > 0) write({ kind: 'error', file: fileOf(module), name: '', messages: messages(errors) });
    write({ kind: 'done', file: fileOf(module) });
  }

  onTestRunEnd(_modules, unhandled, reason) {
    for (const error of unhandled) write({ kind: 'error', file: 'outside of any test', name: '', messages: messages([error]) });
    write({ kind: 'end', reason });
  }
}

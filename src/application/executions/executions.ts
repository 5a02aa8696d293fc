import { bindUseCases, type Bound } from '../use-cases.ts';
import { deleteExecution, type DeleteExecutionDeps } from './delete-execution.ts';
import { getExecution, type GetExecutionDeps } from './get-execution.ts';
import { listExecutions } from './list-executions.ts';
import { readOutput } from './read-output.ts';
import { resizeExecution } from './resize-execution.ts';
import { runExecution, type RunExecutionDeps } from './run-execution.ts';
import { signalExecution } from './signal-execution.ts';
import { writeInput, type WriteInputDeps } from './write-input.ts';

type ExecutionsDeps = RunExecutionDeps & GetExecutionDeps & WriteInputDeps & DeleteExecutionDeps;

const useCases = {
  run: runExecution,
  list: listExecutions,
  get: getExecution,
  output: readOutput,
  write: writeInput,
  signal: signalExecution,
  resize: resizeExecution,
  delete: deleteExecution,
};

/** The use cases of executions. Each takes the caller's scope. Sandboxes outside the scope, and their executions, are not found. */
export type Executions = Bound<typeof useCases>;

export function createExecutions(deps: ExecutionsDeps): Executions {
  return bindUseCases(deps, useCases);
}

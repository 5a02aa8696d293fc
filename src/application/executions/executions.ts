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

/** The use cases of executions. Each takes whose sandboxes the caller sees: others, and what runs in them, do not exist for it. */
export type Executions = Bound<typeof useCases>;

export function createExecutions(deps: ExecutionsDeps): Executions {
  return bindUseCases(deps, useCases);
}

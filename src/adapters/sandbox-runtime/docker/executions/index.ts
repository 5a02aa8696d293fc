export { createExecutions } from './executions.ts';

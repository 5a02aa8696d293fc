export { createProcessRuntime, type ProcessRuntimeOptions } from './process-runtime.ts';

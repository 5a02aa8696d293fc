export { createDockerRuntime } from './docker-runtime.ts';
export type { DockerRuntimeOptions } from './options.ts';

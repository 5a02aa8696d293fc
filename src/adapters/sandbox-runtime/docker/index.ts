export { createDockerRuntime, type DockerRuntimeOptions } from './docker-runtime.ts';

export { startGitLab } from './server.ts';
export type { GitLabDouble, GitLabDoubleOptions } from './server.ts';
export type { Fault, RouteName } from './faults.ts';

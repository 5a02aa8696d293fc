export { startGitHttp } from './server.ts';
export type { GitHttp } from './server.ts';

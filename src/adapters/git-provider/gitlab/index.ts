export { createGitLabProvider } from './provider.ts';
export type { GitLabClient, GitLabOptions } from './options.ts';

export { createGitLabProvider } from './gitlab-provider.ts';
export type { GitLabClient, GitLabOptions } from './gitlab-provider.ts';

export { createGitLabProvider } from './gitlab-provider.ts';
export type { GitLabOptions } from './gitlab-provider.ts';

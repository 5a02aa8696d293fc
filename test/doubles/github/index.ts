export { doubleToken, startGitHubDouble, type DoubleOptions, type GitHubDouble } from './double.ts';

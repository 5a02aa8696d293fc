export { createGitMirror } from './git-mirror.ts';
export type { GitMirrorOptions } from './git-mirror.ts';

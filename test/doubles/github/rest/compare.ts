import { countsBetween } from '../git.ts';
import { refusal } from '../request.ts';
import { githubDescription, type Operation } from './openapi.ts';
import type { Route } from './routes.ts';

const operation: Operation = { path: '/repos/{owner}/{repo}/compare/{basehead}', method: 'get' };

/** How the histories of two commits stand to each other. */
export const compare: Route = {
  operation,
  async answer({ repository: { gitDir }, rest: [basehead = ''] }) {
    const [base, head] = basehead.split('...');
    const counts = base === undefined || head === undefined ? null : await countsBetween(gitDir, base, head);
    if (counts === null) return refusal(404, 'Not Found');
    const fields = { status: statusOf(counts), ahead_by: counts.ahead, behind_by: counts.behind };
    return { status: 200, body: githubDescription().complete(operation, fields) };
  },
};

export function statusOf({ ahead, behind }: { readonly ahead: number; readonly behind: number }): string {
  if (ahead > 0 && behind > 0) return 'diverged';
  if (ahead > 0) return 'ahead';
  return behind > 0 ? 'behind' : 'identical';
}

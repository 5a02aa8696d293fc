import { access, constants } from 'node:fs/promises';
import type { CheckResult } from '../../../ports/check-result.ts';
import { isFailure } from '../../../domain/failure.ts';
import { withFailures } from './file-errors.ts';
import type { Opening } from './opening.ts';
import type { ProcessTable } from './process-table.ts';

/** Whether this host can run sandboxes, in a line for a person. */
export async function checkHost(opening: Opening, table: ProcessTable, root: string): Promise<CheckResult> {
  try {
    await withFailures(async () => {
      await opening.done();
      await access(root, constants.W_OK);
      await access('/bin/sh', constants.X_OK);
    });
    if ((await table.find(process.pid)) === null) return { ok: false, detail: `this host's processes can't be read with ${table.kind}` };
    return { ok: true, detail: 'sandboxes are process groups of this host, without isolation' };
  } catch (error) {
    return { ok: false, detail: isFailure(error) ? error.message : "this host's processes can't be read" };
  }
}

import { isSameReason, type Reason } from '../../../domain/reason.ts';
import type { CheckoutProgress } from '../../../ports/repository-checkouts.ts';

const phases = [
  ['Receiving objects', 'receiving'],
  ['Resolving deltas', 'unpacking'],
] as const;

/** Returns a function that reads git's progress output and reports it in steps of ten percent. */
export function reportProgress(progress: CheckoutProgress): (output: string) => void {
  let last: Reason | null = null;
  return (output) => {
    for (const [words, phase] of phases) {
      const percent = [...output.matchAll(new RegExp(`${words}: +(\\d{1,3})%`, 'gu'))].at(-1)?.[1];
      if (percent === undefined) continue;
      const reason: Reason = { code: 'fetching_repository', phase, percent: Math.floor(Number(percent) / 10) * 10 };
      if (!isSameReason(reason, last)) progress(reason);
      last = reason;
    }
  };
}

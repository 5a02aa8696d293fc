import type { CheckoutProgress } from '../../../ports/repository-checkouts.ts';

const phases = [
  ['Receiving objects', 'received'],
  ['Resolving deltas', 'put together'],
] as const;

/** Reads how far git says that it is, and tells it in steps of ten percent. */
export function reportProgress(progress: CheckoutProgress): (words: string) => void {
  let told = '';
  return (words) => {
    for (const [phase, done] of phases) {
      const percent = [...words.matchAll(new RegExp(`${phase}: +(\\d{1,3})%`, 'gu'))].at(-1)?.[1];
      if (percent === undefined) continue;
      const detail = `fetching the repository: ${Math.floor(Number(percent) / 10) * 10}% ${done}`;
      if (detail !== told) progress(detail);
      told = detail;
    }
  };
}

import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { isFailure } from '../../client/index.ts';
import { asError } from '../live.ts';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isFailure: boolean;
}

export const toasts = signal<readonly Toast[]>([]);
let nextToast = 1;

/** Shows a message for a few seconds. A failure stays until the user closes it. */
export function toast(text: string, isFailure = false): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.filter((shown) => shown.text !== text), { id, text, isFailure }];
  if (!isFailure) setTimeout(() => closeToast(id), 4000);
}

export function closeToast(id: number): void {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
}

/** Shows the reason for a failure, unless the page shows it already. */
export function toastFailure(error: unknown): void {
  if (!isFailure(error, 'unauthorized')) toast(messageOf(error), true);
}

export function messageOf(error: unknown): string {
  return asError(error).message;
}

/** Runs the action of a control, one run at a time. A failure becomes a toast, unless `onFailure` handles it. */
export function useAction(
  onFailure: (error: unknown) => void = toastFailure,
): readonly [isBusy: boolean, run: (work: () => Promise<unknown>) => Promise<void>] {
  const [isBusy, setBusy] = useState(false);
  const run = async (work: () => Promise<unknown>) => {
    if (isBusy) return;
    setBusy(true);
    try {
      await work();
    } catch (error) {
      onFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return [isBusy, run];
}

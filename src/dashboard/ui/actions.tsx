import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';
import { isFailure } from '../../client/index.ts';
import { asError } from '../live-resources.ts';
import { Button, type ButtonProps } from './controls.tsx';
import { Icon } from './icons.tsx';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isFailure: boolean;
}

const toasts = signal<readonly Toast[]>([]);
let nextToast = 1;

/** Shows a message for a few seconds. A failure stays until the user closes it. */
export function toast(text: string, isFailure = false): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.filter((shown) => shown.text !== text), { id, text, isFailure }];
  if (!isFailure) setTimeout(() => closeToast(id), 4000);
}

function closeToast(id: number): void {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isFailure }) => (
        <div key={id} class={isFailure ? 'toast failed' : 'toast'}>
          {isFailure && <Icon name="warning" />}
          <span>{text}</span>
          <Button kind="quiet" icon="close" label="Close" onClick={() => closeToast(id)} />
        </div>
      ))}
    </div>
  );
}

/** Shows the reason for a failure, unless the page shows it already. `subject` is what failed, if the reason may not name it. */
export function toastFailure(error: unknown, subject?: string): void {
  const { message } = asError(error);
  if (!isFailure(error, 'unauthorized')) toast(subject === undefined ? message : `${subject}: ${message}`, true);
}

/** Runs the action of a control, one run at a time. A failure becomes a toast, unless `onFailure` handles it. */
export function useAction(
  onFailure: (error: unknown) => void = toastFailure,
): readonly [isBusy: boolean, run: (work: () => Promise<unknown>) => Promise<void>] {
  const [isBusy, setBusy] = useState(false);
  const isRunning = useRef(false);
  const run = async (work: () => Promise<unknown>) => {
    if (isRunning.current) return;
    const note = (isNow: boolean) => setBusy(isRunning.current = isNow);
    note(true);
    await work().catch(onFailure).finally(() => note(false));
  };
  return [isBusy, run];
}

type ActionProps = Omit<ButtonProps, 'onClick'>;

/** A button that is disabled until its work is done. */
export function ActionButton({ onAct, ...props }: ActionProps & { readonly onAct: () => Promise<unknown> }) {
  const [isBusy, run] = useAction();
  return <Button {...props} disabled={isBusy || props.disabled === true} onClick={() => void run(onAct)} />;
}

/** Copies the text. Browsers allow it only over HTTPS and on the server's machine; elsewhere there is no button. */
export function CopyButton({ text }: { readonly text: string }) {
  if (!isSecureContext) return null;
  return <ActionButton kind="quiet" icon="copy" label="Copy" onAct={async () => {
    await navigator.clipboard.writeText(text);
    toast('Copied.');
  }} />;
}

/** Saves the body of a response as a file with this name. */
export function DownloadButton({ name, read, ...props }: ActionProps & { readonly name: string; readonly read: () => Promise<Response> }) {
  return <ActionButton icon="download" {...props} onAct={async () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await (await read()).blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }} />;
}

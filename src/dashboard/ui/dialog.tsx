import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from './controls.tsx';
import { asError } from '../live-resources.ts';
import { route } from '../route.ts';
import { toastFailure, useAction } from './actions.tsx';

interface DialogProps {
  readonly title: string;
  /** `any`: a press outside closes it, too. Only for a dialog with nothing that could be lost. */
  readonly closedby?: 'any';
  readonly onClose: () => void;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus in it and closes it on Escape. */
export function Dialog({ title, onClose, children, ...rest }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  // Opened before the next event, so the next key goes to the dialog. Closed before it is removed: that returns the focus.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  // Browsers send `cancel` before they close the dialog. They may send `close` after the next key, which must not act on the page as it
  // was with the dialog.
  return (
    <dialog ref={element} {...rest} aria-label={title} onCancel={({ target, currentTarget }) => target === currentTarget && onClose()}
      onClose={({ currentTarget }) => currentTarget.isConnected && onClose()}>
      <div class="dialog">{children}</div>
    </dialog>
  );
}

interface FormDialogProps extends DialogProps {
  readonly submit: string;
  readonly isDangerous?: boolean;
  readonly onSubmit: Submit<[texts: FormTexts]>;
}

/** Does the work of a form. May return what follows after the dialog was closed, unless the user has closed it before. */
type Submit<T extends unknown[]> = (...given: T) => Promise<(() => void) | void>;

/** The texts of a form's fields by their names, trimmed and without empty ones. */
export type FormTexts = Readonly<Record<string, string | undefined>>;

function textsIn(form: HTMLFormElement): FormTexts {
  const texts = Array.from(new FormData(form), ([name, value]) => [name, typeof value === 'string' ? value.trim() : ''] as const);
  return Object.fromEntries(texts.filter(([, text]) => text !== ''));
}

/** A dialog with a form. It closes when the action has succeeded. */
export function FormDialog({ submit, isDangerous = false, onSubmit, children, ...props }: FormDialogProps) {
  // Shown in the dialog, because toasts are behind an open dialog and can't be clicked.
  const [failure, setFailure] = useState<string | null>(null);
  const isGone = useRef(false);
  useEffect(() => () => void (isGone.current = true), []);
  const [isBusy, run] = useAction((error) => (isGone.current ? toastFailure(error) : setFailure(asError(error).message)));
  const send = (form: HTMLFormElement) => run(async () => {
    setFailure(null);
    const follow = await onSubmit(textsIn(form));
    if (isGone.current) return;
    props.onClose();
    follow?.();
  });
  return (
    <Dialog {...props}>
      <form onSubmit={(event) => {
        event.preventDefault();
        void send(event.currentTarget);
      }}>
        <h2>{props.title}</h2>
        {children}
        {failure !== null && <p class="banner bad" role="alert">{failure}</p>}
        <footer>
          <Button onClick={props.onClose}>Cancel</Button>
          <Button type="submit" kind={isDangerous ? 'danger' : 'primary'} disabled={isBusy}>{submit}</Button>
        </footer>
      </form>
    </Dialog>
  );
}

interface Question {
  readonly title: string;
  /** The text that names the loss. */
  readonly text: string;
  readonly submit: string;
  readonly onSubmit: Submit<[]>;
}

const question = signal<Question | null>(null);

/** Asks for confirmation before something is lost. */
export function ask(asked: Question): void {
  question.value = asked;
}

export function AskedQuestion() {
  // Otherwise the next page, or the next user, would be asked it: browsers go back also while a dialog is open.
  useEffect(() => () => void (question.value = null), [route.value.path.join('/')]);
  const asked = question.value;
  if (asked === null) return null;
  const { text, ...props } = asked;
  return <FormDialog {...props} isDangerous closedby="any" onClose={() => (question.value = null)}><p>{text}</p></FormDialog>;
}

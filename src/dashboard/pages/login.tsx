import { useEffect, useState } from 'preact/hooks';
import { asError } from '../live-resources.ts';
import { loginNotice, logIn } from '../session.ts';
import { useAction } from '../ui/actions.tsx';
import { Button, Checkbox, Field } from '../ui/controls.tsx';
import { Logo } from '../ui/icons.tsx';

export function LoginPage() {
  const [key, setKey] = useState('');
  const [isTabOnly, setTabOnly] = useState(false);
  const [isBusy, run] = useAction((error) => (loginNotice.value = asError(error).message));
  useEffect(() => {
    document.title = 'Log in · Skep';
  }, []);
  return (
    <main class="login">
      <form onSubmit={(event) => {
        event.preventDefault();
        if (key.trim() !== '') void run(() => logIn(key.trim(), !isTabOnly));
      }}>
        <Logo />
        <h1>Log in to Skep</h1>
        {loginNotice.value !== null && <p class="banner bad" role="alert">{loginNotice.value}</p>}
        <Field label="API key" hint="On the server, skep keys create NAME makes one, and skep dashboard prints a login link.">
          <input type="password" autofocus required value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </Field>
        <Checkbox label="Forget the key when this tab is closed" checked={isTabOnly} onChange={setTabOnly} />
        <Button type="submit" kind="primary" disabled={isBusy || key.trim() === ''}>Log in</Button>
      </form>
    </main>
  );
}

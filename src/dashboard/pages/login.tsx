import { useState } from 'preact/hooks';
import { loginNotice, logIn } from '../session.ts';
import { texts } from '../texts.ts';
import { Button, Checkbox, Field } from '../ui/controls.tsx';
import { messageOf, useAction } from '../ui/actions.ts';
import { Logo } from '../ui/logo.tsx';

export function LoginPage() {
  const [key, setKey] = useState('');
  const [isTabOnly, setTabOnly] = useState(false);
  const [isBusy, run] = useAction((error) => (loginNotice.value = messageOf(error)));
  return (
    <main class="login">
      <form onSubmit={(event) => {
        event.preventDefault();
        void run(() => logIn(key.trim(), !isTabOnly));
      }}>
        <Logo />
        <h1>{texts.login.title}</h1>
        {loginNotice.value !== null && <p class="banner bad" role="alert">{loginNotice.value}</p>}
        <Field label={texts.login.key} hint={texts.login.hint}>
          <input type="password" autofocus required value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </Field>
        <Checkbox label={texts.login.tabOnly} checked={isTabOnly} onChange={setTabOnly} />
        <Button type="submit" kind="primary" disabled={isBusy || key.trim() === ''}>{texts.login.submit}</Button>
      </form>
    </main>
  );
}

import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { readableName } from './format.ts';
import { Help, Palette, paletteTitle, shownOverlay, useShortcuts } from './overlays.tsx';
import { asError, followChanges } from './live-resources.ts';
import { ConversationPage } from './pages/conversation.tsx';
import { ConversationsPage } from './pages/conversations.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LoginPage } from './pages/login.tsx';
import { MicroagentsPage } from './pages/microagents.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { SandboxPage } from './pages/sandbox.tsx';
import { SandboxesPage } from './pages/sandboxes.tsx';
import { SettingsPage } from './pages/settings.tsx';
import { SpecsPage } from './pages/specs.tsx';
import { places, route } from './route.ts';
import { followOtherTab, isOnline, loginCode, logInWithLink, loginNotice, resumeSession, session } from './session.ts';
import './theme.ts';
import { toastFailure, Toasts } from './ui/actions.tsx';
import { Button, Link } from './ui/controls.tsx';
import { AskedQuestion } from './ui/dialog.tsx';
import { Icon, Logo } from './ui/icons.tsx';
import { Empty, Loading, Page } from './ui/page.tsx';

function App() {
  const [isReady, setReady] = useState(false);
  const code = loginCode();
  useEffect(() => {
    (code === null ? resumeSession() : logInWithLink(code)).catch(showLoginFailure).finally(() => setReady(true));
  }, []);
  useEffect(() => {
    if (isReady && code !== null) logInWithLink(code).catch(showLoginFailure);
  }, [isReady, code]);
  if (!isReady) return <main class="login"><Loading rows={3} /></main>;
  // With another key, everything is loaded again.
  return <>{session.value === null ? <LoginPage /> : <Shell key={session.value.me} />}<Toasts /></>;
}

addEventListener('storage', (event) => void followOtherTab(event).catch(showLoginFailure));

function showLoginFailure(error: unknown): void {
  if (session.value === null) loginNotice.value = asError(error).message;
  else toastFailure(error);
}

function Shell() {
  useShortcuts();
  const { path: [place, id] } = route.value;
  // The page of a conversation has its own stream, and browsers have few connections to one server.
  const hasOwnStream = place === 'conversations' && id !== undefined;
  const [failure, setFailure] = useState<Error | null>(null);
  useEffect(() => {
    setFailure(null);
    return hasOwnStream ? undefined : followChanges(setFailure);
  }, [hasOwnStream]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>Skip to the content</a>
      <TopBar />
      <Navigation />
      {!isOnline.value && <p class="offline" role="status">The server does not answer. Trying again …</p>}
      {isOnline.value && failure !== null && <p class="offline" role="status">Not up to date: {failure.message}</p>}
      <Current />
      <AskedQuestion />
      {shownOverlay.value === 'palette' && <Palette />}
      {shownOverlay.value === 'help' && <Help />}
    </>
  );
}

function Current() {
  const { path: [place = 'overview', id] } = route.value;
  switch (place) {
    case 'overview': return <OverviewPage />;
    case 'conversations': return id === undefined ? <ConversationsPage /> : <ConversationPage key={id} id={id} />;
    case 'sandboxes': return id === undefined ? <SandboxesPage /> : <SandboxPage key={id} id={id} />;
    case 'microagents': return <MicroagentsPage key={id} />;
    case 'specs': return <SpecsPage />;
    case 'keys': return <KeysPage />;
    case 'settings': return <SettingsPage />;
    default: return <Page title="Not found"><Empty icon="search" title="There is no such page" /></Page>;
  }
}

/** The bar above the page, for narrow screens. */
function TopBar() {
  return (
    <header class="top-bar">
      <button type="button" class="button quiet square" popovertarget="navigation" aria-label="Navigation"><Icon name="menu" /></button>
      <Logo /><b>Skep</b>
      <Button kind="quiet" icon="search" label={paletteTitle} onClick={() => (shownOverlay.value = 'palette')} />
    </header>
  );
}

function closeNavigation(): void {
  const element = document.getElementById('navigation');
  if (element?.matches(':popover-open') === true) element.hidePopover();
}

function Navigation() {
  const { path: [current = 'overview'] } = route.value;
  return (
    <nav id="navigation" class="navigation" popover="auto" aria-label="Navigation" onClick={closeNavigation}>
      <p class="brand"><Logo />Skep</p>
      <button type="button" class="find" onClick={() => (shownOverlay.value = 'palette')}>
        <Icon name="search" /><span>Find …</span><kbd>Ctrl K</kbd>
      </button>
      <ul>
        {places.map((place) => (
          <li key={place}>
            <Link to={[place]} current={place === current}><Icon name={place} />{readableName(place)}</Link>
          </li>
        ))}
      </ul>
      <footer>
        <span class="who clip" title={session.value?.me.key_name}>{session.value?.me.user_id}</span>
        <Button kind="quiet" icon="help" label="Help" onClick={() => (shownOverlay.value = 'help')} />
      </footer>
    </nav>
  );
}

render(<App />, document.body);

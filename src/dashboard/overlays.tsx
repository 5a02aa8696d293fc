import { signal } from '@preact/signals';
import { useLayoutEffect, useState } from 'preact/hooks';
import { readableName, shownTitle } from './format.ts';
import { type Resource, useDebounced, useResource } from './live-resources.ts';
import { navigate, places } from './route.ts';
import { canChange, currentSession, logOut } from './session.ts';
import { Facts, isComposing } from './ui/controls.tsx';
import { Dialog } from './ui/dialog.tsx';
import { Icon, type IconName } from './ui/icons.tsx';

export const paletteTitle = 'Go to a page, or find a conversation or a sandbox';

export const shownOverlay = signal<'palette' | 'help' | null>(null);

const close = () => (shownOverlay.value = null);

/** Keys that work everywhere except in input fields. */
const shortcuts: Readonly<Record<string, () => void>> = {
  '?': () => (shownOverlay.value = 'help'),
  '/': () => document.querySelector<HTMLInputElement>('main input')?.focus(),
  c: () => canChange() && navigate(['conversations'], { new: 'yes' }),
  s: () => canChange() && navigate(['sandboxes'], { new: 'yes' }),
  j: () => moveFocus(1),
  k: () => moveFocus(-1),
  ...Object.fromEntries(places.map((place, index) => [String(index + 1), () => navigate([place])])),
};

/** Moves the focus along the rows of a list. */
function moveFocus(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main .row-link')];
  const current = rows.findIndex((row) => row === document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, current + step))]?.focus();
}

export function useShortcuts(): void {
  // Before the first paint, so that the keys work as soon as the page is seen.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        shownOverlay.value = shownOverlay.value === 'palette' ? null : 'palette';
        return;
      }
      const isTyping = event.target instanceof HTMLElement && event.target.closest('input, textarea, select, .terminal-screen') !== null;
      const act = shortcuts[event.key];
      const isInDialog = shownOverlay.value !== null || document.querySelector('dialog[open]') !== null;
      if (isTyping || isInDialog || act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

const shortcutHelp = [
  ['Ctrl K', 'Go anywhere, and do anything'], ['?', 'This help'], ['/', 'Search or filter the list'], ['j k', 'Next and previous row'],
  ['Enter', 'Open the row'], ['c', 'New conversation'], ['s', 'Start a sandbox'], ['1 – 7', 'The pages of the navigation'],
  ['Esc', 'Close a dialog'],
] as const;

export function Help() {
  return (
    <Dialog title="Help" closedby="any" onClose={close}>
      <h2>Help</h2>
      <Facts facts={shortcutHelp} />
      <p class="dim">This page uses only the HTTP API. <a href="docs">API reference</a></p>
    </Dialog>
  );
}

interface Command {
  readonly icon: IconName;
  readonly label: string;
  readonly hint?: string;
  readonly act: () => void;
}

function commands(): Command[] {
  const changes: Command[] = [
    { icon: 'plus', label: 'New conversation', act: () => navigate(['conversations'], { new: 'yes' }) },
    { icon: 'plus', label: 'Start a sandbox', act: () => navigate(['sandboxes'], { new: 'yes' }) },
  ];
  return [
    ...(canChange() ? changes : []),
    ...places.map((place) => ({ icon: place, label: readableName(place), hint: 'Page', act: () => navigate([place]) })),
    { icon: 'help', label: 'Help', act: () => setTimeout(() => (shownOverlay.value = 'help')) },
    { icon: 'leave', label: 'Log out', act: () => logOut() },
  ];
}

const maxFound = 16;

/** The API can't search for a part of an id, so the newest sandboxes are read. */
const maxSandboxesRead = 300;

interface Found {
  readonly query: string;
  readonly commands: readonly Command[];
}

const nothingFound: Found = { query: '', commands: [] };

/** Finds conversations whose title contains the text, and sandboxes whose id does, among the newest. */
function useFound(query: string): Found & Pick<Resource<Found>, 'error'> {
  const { client } = currentSession();
  const found = useResource(async (signal): Promise<Found> => {
    const conversations = await client.request('GET /api/v1/app-conversations', {
      query: { title__contains: query || undefined, limit: 8, sort_order: 'UPDATED_AT_DESC' }, signal,
    });
    const commands: Command[] = conversations.items.map(({ id, title }) => (
      { icon: 'conversations', label: shownTitle(title, id), hint: 'Conversation', act: () => navigate(['conversations', id]) }
    ));
    if (query === '') return { query, commands };
    let read = 0;
    for await (const { id } of client.sandboxes.list({ limit: 100 }, { signal })) {
      read += 1;
      if (id.includes(query)) commands.push({ icon: 'sandboxes', label: id, hint: 'Sandbox', act: () => navigate(['sandboxes', id]) });
      if (commands.length === maxFound || read === maxSandboxesRead) break;
    }
    return { query, commands };
  }, [query]);
  return { ...(found.data ?? nothingFound), error: found.error };
}

/** The command palette: opens any page and runs any command by its name. */
export function Palette() {
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState(0);
  const found = useFound(useDebounced(query.trim(), 120));
  const wanted = query.trim().toLowerCase();
  const isFound = found.query === query.trim();
  const isMatch = ({ label }: Command) => label.toLowerCase().includes(wanted);
  // What was found for an earlier text must not be what Enter opens.
  const shown = [...commands().filter(isMatch), ...(isFound ? found.commands : found.commands.filter(isMatch))].slice(0, 20);
  const run = ({ act }: Command) => {
    close();
    act();
  };
  useLayoutEffect(() => document.getElementById(`command-${chosen}`)?.scrollIntoView({ block: 'nearest' }), [chosen]);
  const move = (step: number) => setChosen((chosen + step + shown.length) % Math.max(1, shown.length));
  return (
    <Dialog title={paletteTitle} closedby="any" onClose={close} class="palette">
      <input autofocus value={query} placeholder={paletteTitle} aria-label={paletteTitle}
        role="combobox" aria-expanded="true" aria-controls="commands" aria-activedescendant={`command-${chosen}`}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={(event) => {
          if (isComposing(event)) return;
          const command = shown[chosen];
          if (event.key === 'ArrowDown' || event.key === 'ArrowUp') move(event.key === 'ArrowDown' ? 1 : -1);
          else if (event.key === 'Enter' && command !== undefined) run(command);
          else return;
          event.preventDefault();
        }} />
      <ul id="commands" role="listbox" aria-label={paletteTitle}>
        {shown.map((command, index) => (
          <li key={`${command.hint} ${command.label} ${index}`} id={`command-${index}`} role="option" aria-selected={index === chosen}
            onMouseMove={() => setChosen(index)} onClick={() => run(command)}>
            <Icon name={command.icon} /><span class="clip">{command.label}</span><small>{command.hint}</small>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="dim">{isFound ? 'Nothing matches' : found.error?.message ?? 'Searching …'}</p>}
    </Dialog>
  );
}

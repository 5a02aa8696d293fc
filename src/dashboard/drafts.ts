import { signal } from '@preact/signals';

const prefix = 'skep.draft:';
const ownerKey = 'skep.draft-owner';

/** What the user has typed but not sent or saved. */
export interface Draft {
  readonly text: string;
  /** The version of the file that it changes; null if there is no file. */
  readonly etag?: string | null;
}

type Change = (present: Draft | null) => Draft | null;

/** The drafts by their places. The storage of the tab has them too, so a reload keeps them. */
const drafts = signal<ReadonlyMap<string, Draft>>(new Map(stored()));

function* stored(): Generator<[place: string, draft: Draft]> {
  for (const [name, json] of Object.entries<string>(sessionStorage)) {
    if (name.startsWith(prefix)) yield [name.slice(prefix.length), JSON.parse(json)];
  }
}

/** The places whose drafts are too long for the storage. */
const unstored = new Set<string>();

addEventListener('beforeunload', (event) => {
  if (unstored.size > 0) event.preventDefault();
});

/** Returns the draft of this place, or null, and a function that changes it. The draft stays while other pages are shown. */
export function useDraft(place: string): readonly [draft: Draft | null, change: (change: Change) => void] {
  const present = () => drafts.value.get(place) ?? null;
  return [present(), (change) => setDraft(place, change(present()))];
}

function setDraft(place: string, draft: Draft | null): void {
  const changed = new Map(drafts.value);
  if (draft === null) changed.delete(place);
  else changed.set(place, draft);
  drafts.value = changed;
  unstored.delete(place);
  // Removed first, because the storage keeps the old value if the new one is too long.
  sessionStorage.removeItem(prefix + place);
  if (draft === null) return;
  try {
    sessionStorage.setItem(prefix + place, JSON.stringify(draft));
  } catch {
    unstored.add(place);
  }
}

/** Returns what is left of a draft when this text is sent: what was typed after it meanwhile, or all of it if it was changed. */
export function withoutSent(draft: Draft | null, sent: string): Draft | null {
  if (draft === null || !draft.text.startsWith(sent)) return draft;
  return draftOf(draft.text.slice(sent.length).trimStart());
}

export function draftOf(text: string): Draft | null {
  return text === '' ? null : { text };
}

export function deleteDrafts(): void {
  for (const place of drafts.value.keys()) setDraft(place, null);
}

/** Keeps the drafts only if they are of this user. */
export function keepDraftsOf(userId: string): void {
  if (sessionStorage.getItem(ownerKey) === userId) return;
  deleteDrafts();
  sessionStorage.setItem(ownerKey, userId);
}

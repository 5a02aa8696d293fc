import { effect, signal } from '@preact/signals';

const stored = 'skep.theme';

/** `light`, `dark`, or empty for the system's preference. */
export const theme = signal(localStorage.getItem(stored) ?? '');

effect(() => {
  localStorage.setItem(stored, theme.value);
  if (theme.value === '') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
});

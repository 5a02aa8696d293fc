import skep from '../skep.svg';

/** Icon paths on a grid of 16, in the text colour. */
const paths = {
  overview: 'M2.5 13.5v-4M6 13.5v-8M9.5 13.5v-6M13 13.5v-11',
  conversations: 'M2.5 3.5h11v8h-6l-3 2.5v-2.5h-2z',
  sandboxes: 'M8 1.8 13.8 5v6L8 14.2 2.2 11V5zM2.2 5 8 8.2 13.8 5M8 8.2v6',
  microagents: 'M4 1.8h5.5L12.5 5v9.2H4zM9.2 1.8V5.2h3.3M6 8.5h4.5M6 11h3',
  specs: 'M2.5 4h11M2.5 8h11M2.5 12h11M5.5 2.5v3M10.5 6.5v3M6.5 10.5v3',
  keys: 'M10 9.5a3.5 3.5 0 1 0-3.4-2.6L2 11.5V14h2.5v-1.5H6V11l1.7-1.7c.7.1 1.5.2 2.3.2zM10.8 5.2v.1',
  settings: 'M8 10.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4zM8 2v2m0 8v2M2 8h2m8 0h2M3.7 3.7 5 5m6 6 1.3 1.3m-8.6 0L5 11m6-6 1.3-1.3',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.8 10.8 14 14',
  plus: 'M8 3v10M3 8h10',
  close: 'M4 4l8 8M12 4l-8 8',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  help: 'M6 6.2a2 2 0 1 1 2.8 1.9c-.6.3-.8.7-.8 1.4M8 11.8v.1M8 14.3A6.3 6.3 0 1 0 8 1.7a6.3 6.3 0 0 0 0 12.6z',
  leave: 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  check: 'M3 8.5 6.5 12 13 4.5',
  stop: 'M4.5 4.5h7v7h-7z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M4.5 2.8v10.4L13 8z',
  trash: 'M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9',
  send: 'M8 13V3M3.8 7.2 8 3l4.2 4.2',
  file: 'M4 1.8h5.5L12.5 5v9.2H4zM9.2 1.8V5.2h3.3',
  folder: 'M1.8 12.8V3.2h4.4l1.5 1.8h6.5v7.8z',
  upload: 'M8 10.5V2.5M4.8 5.5 8 2.5l3.2 3M2.5 11v2.5h11V11',
  download: 'M8 2.5v8M4.8 7.5 8 10.5l3.2-3M2.5 11v2.5h11V11',
  external: 'M6.5 3h-4v10.5H13v-4M9.5 2.5h4v4M13.5 2.5 7.5 8.5',
  branch: 'M4.5 2v12M4.5 10.5c5 0 7-1.5 7-5V2M9.5 4l2-2 2 2',
  chevron: 'M6 3.5 10.5 8 6 12.5',
  tool: 'M9.5 6.5a3.3 3.3 0 0 1 4.2-4L11.5 4.7l.8 1 2-1.8a3.3 3.3 0 0 1-4.4 3.8l-5.2 5.5-1.9-1.9z',
  warning: 'M8 2 14.5 13.5h-13zM8 6.5v3.5M8 11.7v.1',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { readonly name: IconName }) {
  return <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d={paths[name]} /></svg>;
}

/** A skep is a beehive made of straw. */
export function Logo() {
  return <img class="logo" src={skep} alt="" />;
}

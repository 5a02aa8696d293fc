import { hash } from 'node:crypto';
import { Html } from './html.ts';

const css = `
:root {
  --ink: #1d2430; --soft: #5a6475; --paper: #ffffff; --shade: #f4f6f9; --line: #dde2ea; --link: #0b57c2;
  --get: #0b6b3a; --post: #7a4b00; --delete: #a3202a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e8ef; --soft: #9aa5b5; --paper: #12161d; --shade: #1a202a; --line: #2c3542; --link: #7fb2ff;
    --get: #63d29b; --post: #f0b65a; --delete: #ff8a90;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0; display: grid; grid-template-columns: 19rem minmax(0, 1fr); color: var(--ink); background: var(--paper); font: 16px/1.55 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.25rem 1rem 3rem; background: var(--shade); border-right: 1px solid var(--line); font-size: .875rem; }
nav .title { margin: 0; font-size: 1.125rem; font-weight: 650; }
nav h2 { margin: 1.25rem 0 .25rem; font-size: .75rem; letter-spacing: .06em; text-transform: uppercase; color: var(--soft); border: 0; padding: 0; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: grid; grid-auto-flow: column; grid-auto-columns: auto 1fr; align-items: baseline; padding: .2rem .375rem; border-radius: .25rem; color: inherit; text-decoration: none; }
nav li a:hover { background: var(--line); }
main { max-width: 62rem; padding: 1.5rem clamp(1rem, 4vw, 3rem) 6rem; }
h1 { margin: 0 0 .5rem; font-size: 2rem; }
h2 { margin: 3rem 0 .5rem; padding-bottom: .25rem; border-bottom: 2px solid var(--line); font-size: 1.5rem; }
h3 { margin: 0 0 .25rem; font-size: 1.1875rem; }
h4 { margin: 1.25rem 0 .375rem; font-size: .8125rem; letter-spacing: .04em; text-transform: uppercase; color: var(--soft); }
small { color: var(--soft); font-weight: 400; }
a { color: var(--link); }
a.anchor { color: inherit; text-decoration: none; }
a.anchor:hover::after { content: " #"; color: var(--soft); }
section { margin: 1.5rem 0; padding: 1.25rem; border: 1px solid var(--line); border-radius: .5rem; }
section:target { border-color: var(--link); }
.call { margin: .25rem 0 .75rem; overflow-wrap: anywhere; }
.method { font: 650 .75rem/1 ui-monospace, monospace; text-transform: uppercase; }
nav .method { display: inline-block; width: 3.25rem; }
.get { color: var(--get); } .post { color: var(--post); } .delete { color: var(--delete); }
.open { border: 1px solid var(--line); border-radius: 1rem; padding: .05rem .5rem; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .875em; }
pre { margin: .375rem 0 0; padding: .75rem 1rem; overflow-x: auto; background: var(--shade); border: 1px solid var(--line); border-radius: .375rem; line-height: 1.45; }
pre code { font-size: .8125rem; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .4rem .75rem .4rem 0; border-top: 1px solid var(--line); text-align: left; vertical-align: top; }
th { font-weight: 600; white-space: nowrap; }
thead th { border-top: 0; font-size: .8125rem; color: var(--soft); }
td { min-width: 9rem; }
.limits { font-size: .8125rem; color: var(--soft); overflow-wrap: anywhere; }
details { margin-top: .25rem; }
summary { cursor: pointer; color: var(--soft); font-size: .875rem; }
@media (max-width: 55rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); }
  th { white-space: normal; }
}
`;

export const style = new Html(`<style>${css}</style>`);

/** Lets the page use its own style sheet and follow its links, and nothing else. */
export const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', css, 'base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { parseSync } from 'oxc-parser';

export const layers = ['domain', 'ports', 'application', 'client', 'dashboard', 'adapters', 'composition'] as const;
export type Layer = (typeof layers)[number];

/** An import that the house does not allow. */
export interface Leak {
  readonly file: string;
  readonly imports: string;
  readonly why: string;
}

/** What each layer may import from the others. Adapters have rules of their own besides. */
const mayImport: Readonly<Record<Layer, readonly Layer[]>> = {
  domain: ['domain'],
  ports: ['domain', 'ports'],
  application: ['domain', 'ports', 'application'],
  client: ['client'],
  dashboard: ['client', 'dashboard'],
  adapters: ['domain', 'ports', 'application', 'client', 'adapters'],
  composition: ['domain', 'ports', 'application', 'client', 'adapters', 'composition'],
};

/** Adapters through which somebody drives the application, and what of the inner layers each may import. */
const entryAdapters: Readonly<Record<string, readonly Layer[]>> = {
  http: ['domain', 'ports', 'application'],
  proxy: ['domain', 'ports', 'application'],
  e2b: ['domain', 'ports', 'application'],
  cli: ['client'],
};

/** These answer HTTP too, and do so as the API does. */
const alsoImports: Readonly<Record<string, string>> = { proxy: 'http', e2b: 'http' };

/** What adapters of several ports share. It knows no adapter. */
const shared = 'shared';

export interface SourceFile {
  /** Path below `src`, with `/`. */
  readonly path: string;
  readonly text: string;
}

export function readSources(src: string): SourceFile[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => ({ path: name.split(sep).join('/'), text: readFileSync(join(src, name), 'utf8') }));
}

/** Every specifier that the file imports, by declaration, re-export, dynamic import or type. */
export function importsOf({ path, text }: SourceFile): string[] {
  const { module, errors, program } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0]?.message}`);
  const dynamic = module.dynamicImports.map(({ moduleRequest: { start, end } }) => {
    const literal = /^(['"`])(.*)\1$/.exec(text.slice(start, end));
    return literal?.[2] ?? '(computed)';
  });
  const reExported = module.staticExports.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []));
  const typeImports = [...JSON.stringify(program.body, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)).matchAll(/"type":"TSImportType".*?"value":"([^"]+)"/g)].map((match) => match[1] ?? '');
  return [...module.staticImports.map(({ moduleRequest }) => moduleRequest.value), ...reExported, ...dynamic, ...typeImports];
}

/** The imports of the files that break the arrows. */
export function leaksIn(files: readonly SourceFile[]): Leak[] {
  return files.flatMap((file) => importsOf(file).flatMap((specifier) => {
    const why = broken(file.path, specifier);
    return why === null ? [] : [{ file: file.path, imports: specifier, why }];
  }));
}

function broken(path: string, specifier: string): string | null {
  const [layer] = path.split('/') as [Layer];
  if (!layers.includes(layer)) return path.includes('/') ? 'lies in no layer' : null;
  if (!specifier.startsWith('.')) return brokenPackage(layer, specifier);
  const target = relative('/src', resolve('/src', dirname(path), specifier)).split(sep);
  const [targetLayer] = target as [Layer];
  if (!mayImport[layer].includes(targetLayer)) return `${layer} may not import ${targetLayer}`;
  return layer === 'adapters' ? brokenInAdapter(path, target.join('/')) : null;
}

/** `adapters/<port>/<name>/file.ts` is of one adapter, `adapters/<port>/file.ts` is shared by those of the port. */
function brokenInAdapter(path: string, target: string): string | null {
  const [, group = '', name, file] = path.split('/');
  const [targetLayer = '', targetGroup = '', targetName, targetFile] = target.split('/');
  const entry = entryAdapters[group];
  if (targetLayer !== 'adapters') {
    const allowed: readonly string[] = entry ?? ['domain', 'ports'];
    return allowed.includes(targetLayer) ? null : `the adapter ${group} may not import ${targetLayer}`;
  }
  if (targetGroup === shared && group !== 'cli') return null;
  if (alsoImports[group] === targetGroup) return null;
  if (targetGroup !== group) return `the adapters of ${group} may not import those of ${targetGroup}`;
  if (entry !== undefined || targetFile === undefined) return null;
  return file !== undefined && targetName === name ? null : `${group}/${name} may not import the adapter ${targetName}`;
}

function brokenPackage(layer: Layer, specifier: string): string | null {
  if (layer === 'domain' || layer === 'ports' || layer === 'application') return `${layer} may not import a package`;
  if (layer === 'client') return specifier === 'eventsource-parser' ? null : 'the client runs in browsers too, and is small';
  if (layer === 'dashboard') return /^(preact|@preact|@tanstack|@xterm|diff|markdown-it|strip-ansi)\b/.test(specifier) ? null : 'the dashboard runs in browsers, and is small';
  const wiring = specifier === 'inversify' || specifier.startsWith('@inversifyjs/') || specifier === 'reflect-metadata';
  return wiring && layer !== 'composition' ? 'only the composition knows inversify' : null;
}

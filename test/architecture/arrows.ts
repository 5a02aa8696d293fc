import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { parseSync } from 'oxc-parser';

export const layers = ['domain', 'ports', 'application', 'adapters', 'composition'] as const;
export type Layer = (typeof layers)[number];

/** An import that the house does not allow. */
export interface Leak {
  readonly file: string;
  readonly imports: string;
  readonly why: string;
}

/** What each layer may import from the others. Adapters have a rule of their own besides. */
const mayImport: Readonly<Record<Layer, readonly Layer[]>> = {
  domain: ['domain'],
  ports: ['domain', 'ports'],
  application: ['domain', 'ports', 'application'],
  adapters: ['domain', 'ports', 'application', 'adapters'],
  composition: ['domain', 'ports', 'application', 'adapters', 'composition'],
};

/** What several adapters need and no port is about; it is no adapter, and knows none. */
const toolkit = 'toolkit';

/** Adapters through which somebody drives the application. */
const drivingAdapters: ReadonlySet<string> = new Set(['express']);

export interface SourceFile {
  /** Path below `src`, with `/`. */
  readonly path: string;
  readonly text: string;
}

export function readSources(src: string): SourceFile[] {
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
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
  const [layer, folder = ''] = path.split('/') as [Layer, string?];
  if (!layers.includes(layer)) return path.includes('/') ? 'lies in no layer' : null;
  if (!specifier.startsWith('.')) return brokenPackage(layer, specifier);
  const target = relative('/src', resolve('/src', dirname(path), specifier)).split(sep);
  const [targetLayer, targetFolder] = target as [Layer, string?];
  if (!mayImport[layer].includes(targetLayer)) return `${layer} may not import ${targetLayer}`;
  if (layer !== 'adapters') return null;
  if (targetLayer === 'application' && !drivingAdapters.has(folder)) return `the adapter ${folder} is not a driving one`;
  const foreign = targetLayer === 'adapters' && targetFolder !== folder && targetFolder !== toolkit;
  return foreign ? `the adapter ${folder} may not import the adapter ${targetFolder}` : null;
}

function brokenPackage(layer: Layer, specifier: string): string | null {
  if (layer === 'domain' || layer === 'ports' || layer === 'application') return `${layer} may not import a package`;
  const wiring = specifier === 'inversify' || specifier.startsWith('@inversifyjs/') || specifier === 'reflect-metadata';
  return wiring && layer !== 'composition' ? 'only the composition knows inversify' : null;
}

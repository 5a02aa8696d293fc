import { docsPage } from './docs/page.ts';
import { contentSecurityPolicy } from './docs/style.ts';
import { openApiDocument, type OpenApiDocument } from './openapi/document.ts';
import type { Operation } from './operation.ts';
import type { RouterSettings } from './options.ts';

/** Mounts are few; more different ones than this are a parameter in the mount path, and not worth keeping. */
const maxKept = 16;

interface Kept {
  readonly document: OpenApiDocument & Record<string, unknown>;
  html: string | null;
}

/** What describes the interface, for programs and for people; made when it is first asked for. */
export class Papers {
  readonly #operations: readonly Operation[];
  readonly #settings: RouterSettings;
  readonly #kept = new Map<string, Kept>();

  constructor(operations: readonly Operation[], settings: RouterSettings) {
    this.#operations = operations;
    this.#settings = settings;
  }

  openApi(mount: string): OpenApiDocument & Record<string, unknown> {
    return this.#at(mount).document;
  }

  docs(mount: string, link: (path: string) => string): { readonly html: string; readonly policy: string } {
    const kept = this.#at(mount);
    kept.html ??= docsPage(kept.document, link('/openapi.json'));
    return { html: kept.html, policy: contentSecurityPolicy };
  }

  #at(mount: string): Kept {
    const known = this.#kept.get(mount);
    if (known !== undefined) return known;
    const { product, publicUrl } = this.#settings;
    const made = { document: { ...openApiDocument(this.#operations, { product, publicUrl, mount }) }, html: null };
    if (this.#kept.size < maxKept) this.#kept.set(mount, made);
    return made;
  }
}

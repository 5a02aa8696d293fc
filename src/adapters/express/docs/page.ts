import type { OpenApiDocument } from '../openapi/document.ts';
export function docsPage(document: OpenApiDocument, mount: string): string { return document.openapi + mount; }

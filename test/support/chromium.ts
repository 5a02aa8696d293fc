import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core';
import { describe } from 'vitest';

/** Debian's build of Chromium without windows takes about 60 % of the CPU time of the whole one. */
const [shell, whole] = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'] as const;
const executablePath = process.env['SKEP_CHROMIUM'] ?? (existsSync(shell) ? shell : whole);

/** A limit for what hangs. A busy machine stays far below it. */
export const pageLimitMs = 90_000;

/** Returns why no browser can be started, and how to get one; null if there is one. */
export function whyNotInChromium(): string | null {
  return existsSync(executablePath) ? null : `there is no ${executablePath}; "apt-get install chromium-headless-shell" brings one`;
}

/** Runs a suite with the browser. If there is none, skips it with a warning, or throws if `SKEP_REQUIRE_CHROMIUM=1`. */
export function describeWithChromium(name: string, suite: () => void): void {
  const missing = whyNotInChromium();
  if (missing === null) {
    describe(name, suite);
    return;
  }
  if (process.env['SKEP_REQUIRE_CHROMIUM'] === '1') throw new Error(`${name}: ${missing}, and SKEP_REQUIRE_CHROMIUM=1 asks for it`);
  console.warn(`SKIPPED ${name}: ${missing}.`);
  describe.skip(name, suite);
}

export function openBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

/** Opens a context, whose cookies and storage are its own. */
export async function openContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(pageLimitMs);
  return context;
}

import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';

/** Tests of logs in a browser. */
export function dashboardLogs(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  test('shows the end of a long log from the beginning of a line, and follows its end', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}`);
    // The third request gets no answer.
    const logs = ['line\n'.repeat(60_000).slice(-(256 << 10)), `${'more\n'.repeat(60_000)}the end`];
    await page.route(/\/logs\?/, async (route) => {
      const body = logs.shift();
      if (body !== undefined) await route.fulfill({ body });
    });
    await page.getByRole('link', { name: 'Logs' }).click();
    const screen = page.locator('.screen');
    await screen.getByText('line').waitFor();
    await expect.poll(() => screen.textContent()).toMatch(/^line\n/);
    // A scroll event of the page's own scroll can arrive after more text.
    await page.evaluate(`{
      const screen = document.querySelector('.screen');
      const changes = new MutationObserver(() => screen.dispatchEvent(new Event('scroll')));
      changes.observe(screen, { childList: true, characterData: true, subtree: true });
    }`);
    await screen.getByText('the end').waitFor();
    await expect.poll(() => screen.evaluate((element) => element.scrollHeight - element.scrollTop - element.clientHeight)).toBeLessThan(2);
  });

  test('shows more logs at once than a browser has connections, and the changes in all of them', async () => {
    const { scene } = opened();
    const sandbox = await scene.client.sandboxes.start({ spec: 'web', waitUntil: 'running' });
    const { page: first, context } = await scene.open(`sandboxes/${sandbox.id}?tab=logs`);
    const pages = [first];
    while (pages.length < 5) {
      const page = await context.newPage();
      await page.goto(first.url());
      pages.push(page);
    }
    for (const page of pages) await page.locator('.screen').getByText('listening on port 8000').waitFor();
    await sandbox.pause('stop');
    for (const page of pages) await page.locator('.page-title .status').getByText('Stopped').waitFor();
    await first.close();
    await sandbox.delete();
    for (const page of pages.slice(1)) await page.getByText(/no sandbox|not found|does not exist/i).first().waitFor();
    await context.close();
  });
}

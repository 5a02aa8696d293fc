import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';

/** Tests of the Files tab. */
export function dashboardFiles(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  test('uploads and downloads a file, and replaces one only after a question', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=files`);
    const upload = (text: string) => page.getByLabel('Upload').setInputFiles({ name: 'up.txt', mimeType: 'text/plain', buffer: Buffer.from(text) });
    const expectContent = async (text: string) => {
      await page.getByRole('link', { name: 'up.txt' }).click();
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
      expect(readFileSync(await download.path(), 'utf8')).toBe(text);
      await page.goBack();
    };
    await upload('tea\n');
    await expectContent('tea\n');
    await upload('coffee\n');
    await page.getByRole('dialog', { name: 'Replace up.txt?' }).getByRole('button', { name: 'Cancel' }).click();
    await expectContent('tea\n');
    await upload('coffee\n');
    await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click();
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await expectContent('coffee\n');

    const held = Promise.withResolvers<void>();
    const problem = { type: 'about:blank', title: 'No', status: 409, detail: 'Not now.', code: 'sandbox_busy' };
    await page.route(/refused\.txt/, (route) => route.fulfill({ status: 409, json: problem }));
    await page.route(/late\.txt/, async (route) => (await held.promise, await route.continue()));
    const names = ['early.txt', 'up.txt', 'refused.txt', 'late.txt'];
    await page.getByLabel('Upload').setInputFiles(names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.from('more\n') })));
    await page.getByText('refused.txt: Not now.').waitFor();
    const warned = page.waitForEvent('dialog');
    await page.evaluate('setTimeout(() => location.reload())');
    await (await warned).dismiss();
    held.resolve();
    await page.getByRole('dialog', { name: 'Replace up.txt?' }).getByRole('button', { name: 'Replace' }).click();
    for (const name of ['early.txt', 'late.txt']) await page.getByRole('link', { name }).waitFor();
    await expectContent('more\n');
  });

  test('goes back through tabs and directories, and keeps an unsaved edit', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}`);
    await page.getByRole('link', { name: 'Files' }).click();
    await page.getByRole('link', { name: 'static' }).click();
    await page.getByRole('link', { name: 'index.html' }).click();
    const editor = page.getByLabel('/workspace/static/index.html');
    await editor.fill('unsaved');
    await page.getByRole('navigation', { name: 'Path' }).getByRole('link', { name: 'static' }).click();
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.goBack();
    await page.goBack();
    expect(await editor.inputValue()).toBe('unsaved');
  });

  test('opens a link to a directory, and shows more than the first entries of a long one', async () => {
    const { scene, seeded: { sandbox } } = opened();
    await sandbox.run('ln -s static link');
    const { value: entry } = await sandbox.files.list('/workspace').next();
    const items = Array.from({ length: 1001 }, (_, index) => ({ ...entry, name: `${index}`, path: `/workspace/link/${index}` }));
    await using page = await scene.page(`sandboxes/${sandbox.id}?tab=files`);
    await page.route(/directories\?path=%2Fworkspace%2Flink$/, (route) => route.fulfill({ json: { items: items.slice(1), next_page_id: 'next' } }));
    await page.route(/page_id=next/, (route) => route.fulfill({ json: { items: items.slice(0, 1), next_page_id: null } }));
    await page.getByRole('link', { name: 'link', exact: true }).click();
    await page.locator('.more button').click();
    await page.getByText('1001 entries').waitFor();
    await page.goBack();
    await page.getByRole('link', { name: 'link', exact: true }).waitFor();
  });
}

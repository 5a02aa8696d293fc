import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';

/** Tests of logins in a browser. */
export function dashboardLogins(opened: () => { readonly scene: Scene }): void {
  test('logs in with a link that is pasted into a tab that shows the dashboard, also after a reload', async () => {
    const { scene } = opened();
    const { key } = await scene.client.request('POST /api/v1/keys', { body: { name: 'of one tab', user_id: 'visitor' } });
    await using page = await scene.page('overview', null);
    const user = page.locator('.who');
    await page.getByLabel('API key').fill(key);
    await page.getByLabel('Forget the key').check();
    await page.getByRole('button', { name: 'Log in' }).click();
    await user.getByText('visitor').waitFor();
    const link = await scene.link();
    await page.goto(link);
    await user.getByText('visitor').waitFor({ state: 'detached' });
    expect(page.url()).toBe(`${scene.url}/#/`);
    await page.reload();
    await user.waitFor();
    expect(await user.textContent()).not.toBe('visitor');
    await page.goto(link);
    await page.locator('.toast.failed').waitFor();
    expect(page.url()).toBe(`${scene.url}/#/`);
  });
}

import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';

/** Tests of logins in a browser, and of what a key may not do. */
export function dashboardLogins(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  async function keyNamed(name: string, access: 'full' | 'read' = 'full'): Promise<string> {
    return (await opened().scene.client.request('POST /api/v1/keys', { body: { name, access } })).key;
  }

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

  test('shows a key no buttons and forms for what it may not do', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}`, await keyNamed('reader', 'read'));
    await page.getByRole('heading', { name: 'History' }).waitFor();
    expect(await page.getByRole('button', { name: /Pause|Delete|Stop/ }).count()).toBe(0);
    await page.getByRole('link', { name: 'Files' }).click();
    await page.getByRole('link', { name: 'server.py' }).click();
    await page.getByRole('button', { name: 'Download' }).waitFor();
    expect(await page.getByLabel('/workspace/server.py').getAttribute('readonly')).not.toBeNull();
    await page.goto(`${scene.url}/#/sandboxes/${seeded.sandbox.id}?tab=ports`);
    await page.getByRole('columnheader', { name: 'Port' }).waitFor();
    expect(await page.getByRole('button', { name: 'Make a link' }).count()).toBe(0);
    for (const [place, loaded] of [['conversations?new=yes', 'a.row-link'], ['sandboxes?new=yes', 'option:has-text("coder")']] as const) {
      await page.goto(`${scene.url}/#/${place}`);
      await page.locator(loaded).first().waitFor({ state: 'attached' });
      expect(await page.getByRole('dialog').count(), place).toBe(0);
    }
    await using other = await scene.page('keys', await keyNamed('no administrator'));
    await other.getByRole('cell', { name: 'this one' }).waitFor();
    expect(await other.getByRole('button', { name: 'New key' }).count()).toBe(0);
  });

  test('shows the login after the key is revoked, and returns to the same page afterwards', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page('sandboxes', await keyNamed('revoked'));
    await page.getByRole('link', { name: seeded.sandbox.id }).waitFor();
    await scene.client.request('DELETE /api/v1/keys/{key}', { path: { key: 'revoked' } });
    await page.getByText('Your key is no longer valid').waitFor();
    await page.getByLabel('API key').fill(scene.key);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('link', { name: seeded.sandbox.id }).waitFor();
  });
}

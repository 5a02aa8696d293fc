import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';

/** Tests that the dashboard loses nothing that its user has typed, and nothing that an agent has written. */
export function dashboardDrafts(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  const placeOf = (path: string) => `sandboxes/${opened().seeded.sandbox.id}?tab=files&file=${encodeURIComponent(path)}`;
  const textOf = async (path: string) => await (await opened().seeded.sandbox.files.read(path)).text();

  test('saves an edited file only over the version that was edited, and overwrites another one if its user says so', async () => {
    const { scene, seeded: { sandbox: { files } } } = opened();
    const path = '/workspace/shared.txt';
    await files.write(path, 'first\n');
    await using page = await scene.page(placeOf(path));
    const editor = page.getByLabel(path);
    await editor.fill('mine\n');
    await files.write(path, 'of the agent\n');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').getByText('The file has changed since you began to edit it.').waitFor();
    expect([await textOf(path), await editor.inputValue()]).toEqual(['of the agent\n', 'mine\n']);
    await page.getByRole('button', { name: 'Show the file' }).click();
    expect(await editor.inputValue()).toBe('of the agent\n');
    await page.getByRole('button', { name: 'Show my text' }).click();
    await page.getByRole('button', { name: 'Overwrite the file' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await textOf(path)).toBe('mine\n');
    await editor.fill('mine again\n');
    await files.remove(path);
    await page.reload();
    await page.getByRole('alert').getByText('The file was deleted since you began to edit it.').waitFor();
    await page.getByRole('button', { name: 'Overwrite the file' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await textOf(path)).toBe('mine again\n');
  });

  test('shows that a file has changed under a draft, and drops the draft if its user says so', async () => {
    const { scene, seeded: { sandbox: { files } } } = opened();
    const path = '/workspace/drafted.txt';
    await files.write(path, '');
    await using page = await scene.page(placeOf(path));
    const editor = page.getByLabel(path);
    await editor.fill('draft');
    await page.getByRole('link', { name: 'Logs' }).click();
    await files.write(path, 'of the agent');
    await page.goBack();
    await page.getByRole('alert').getByText('The file has changed').waitFor();
    expect(await editor.inputValue()).toBe('draft');
    await page.getByRole('button', { name: 'Discard my text' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    expect(await editor.inputValue()).toBe('of the agent');
  });

  test('keeps what is typed while a text is saved or sent, and a text that could not be sent', async () => {
    const { scene, seeded } = opened();
    const path = '/workspace/slow.txt';
    await seeded.sandbox.files.write(path, 'one');
    await using page = await scene.page(placeOf(path));
    /** Types behind the text while its request is held. */
    const typeDuring = async (request: RegExp, act: () => Promise<void>, text: string) => {
      const held = Promise.withResolvers<void>();
      const isSent = page.waitForRequest((sent) => request.test(sent.url()) && sent.method() !== 'GET');
      await page.route(request, async (route) => (await held.promise, await route.continue()));
      await act();
      await isSent;
      await page.keyboard.type(text);
      const isAnswered = page.waitForResponse((response) => request.test(response.url()) && response.request().method() !== 'GET');
      held.resolve();
      await isAnswered;
      await page.unroute(request);
    };
    const editor = page.getByLabel(path);
    await editor.press('Control+End');
    await page.keyboard.type(' two');
    await typeDuring(/files\?path/, async () => {
      await page.getByRole('button', { name: 'Save' }).click();
      await editor.press('Control+End');
    }, ' three');
    await page.getByText('Saved.').waitFor();
    expect([await textOf(path), await editor.inputValue()]).toEqual(['one two', 'one two three']);
    await page.getByRole('button', { name: 'Save' }).click();
    await expect.poll(() => textOf(path)).toBe('one two three');

    const { id } = await scene.client.conversations.start({});
    await page.goto(`${scene.url}/#/conversations/${id}`);
    const message = page.getByLabel('Message');
    await message.fill('first');
    await typeDuring(/messages$/, () => message.press('Enter'), ' and more');
    await page.locator('.said.agent').getByText('heard: first').waitFor();
    await expect.poll(() => message.inputValue()).toBe('and more');
    const problem = { type: 'about:blank', title: 'No', status: 409, detail: 'Not now.', code: 'conversation_not_ready' };
    await page.route(/messages$/, (route) => route.fulfill({ status: 409, json: problem }));
    // It is enabled when the message before is sent completely.
    await page.getByRole('button', { name: /^(?:Send|Queue)$/ }).click();
    await page.getByText('Not now.').waitFor();
    expect(await message.inputValue()).toBe('and more');
  });

  test('keeps drafts after a reload, after Escape, and after the key is lost, until the user logs out or another one logs in, in any tab', async () => {
    const { scene, seeded } = opened();
    const { key } = await scene.client.request('POST /api/v1/keys', { body: { name: 'lost', access: 'full' } });
    await using page = await scene.page('conversations?new=yes', key);
    const question = page.getByLabel('What should the agent do?');
    const draftTask = async (text: string) => {
      await question.fill(text);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    await draftTask('a new task');
    await page.goto(`${scene.url}/#/conversations/${seeded.conversation.id}`);
    const message = page.getByLabel('Message');
    await message.fill('unsent');
    await page.reload();
    await expect.poll(() => message.inputValue()).toBe('unsent');
    await scene.client.request('DELETE /api/v1/keys/{key}', { path: { key: 'lost' } });
    await page.getByText('Your key is no longer valid').waitFor();
    const logIn = async (as: string, where: Page = page) => {
      await where.getByLabel('API key').fill(as);
      await where.getByRole('button', { name: 'Log in' }).click();
      await where.getByRole('navigation').first().waitFor();
    };
    await logIn(scene.key);
    expect(await message.inputValue()).toBe('unsent');
    await page.goto(`${scene.url}/#/conversations?new=yes`);
    expect(await question.inputValue()).toBe('a new task');
    const other = await scene.client.request('POST /api/v1/keys', { body: { name: 'other', access: 'full', user_id: 'somebody' } });
    await page.evaluate('localStorage.clear()');
    await page.reload();
    await logIn(other.key);
    expect(await question.inputValue()).toBe('');
    await draftTask('a task of somebody');
    const tab = await page.context().newPage();
    await tab.goto(`${scene.url}/#/settings`);
    await tab.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('API key').waitFor();
    await logIn(other.key, tab);
    await page.locator('.who').getByText('somebody').waitFor();
    await page.goto(`${scene.url}/#/conversations?new=yes`);
    expect(await question.inputValue()).toBe('');
    await draftTask('another task of somebody');
    await page.goto(`${scene.url}/#/settings`);
    await page.getByRole('button', { name: 'Log out' }).click();
    await logIn(other.key);
    await page.goto(`${scene.url}/#/conversations?new=yes`);
    expect(await question.inputValue()).toBe('');
  });

  test('asks before the page is left if the storage has no room for a draft', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`conversations/${seeded.conversation.id}`);
    await page.getByLabel('Message').waitFor();
    await page.evaluate(`for (let size = 1 << 23; size > 0; size >>= 1) {
      try { sessionStorage.setItem('filler' + size, 'x'.repeat(size)); } catch {}
    }`);
    await page.getByLabel('Message').press('x');
    const asked = page.waitForEvent('dialog');
    await page.evaluate('setTimeout(() => location.reload())');
    const dialog = await asked;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.dismiss();
    expect(await page.getByLabel('Message').inputValue()).toBe('x');
  });
}

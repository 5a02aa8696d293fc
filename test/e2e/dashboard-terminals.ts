import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Scene } from '../dashboard/scene.ts';
import type { Seeded } from '../dashboard/seed.ts';

async function openTerminal(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Open a terminal' }).click();
  await page.locator('.xterm-screen').waitFor();
  await shown(page, /[$#] $/);
}

const shown = (page: Page, text: string | RegExp) => page.locator('.xterm-rows').getByText(text).first().waitFor();
const setHidden = (page: Page, isHidden: boolean) => page.evaluate(
  `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`,
);

/** Tests of terminals in a browser. */
export function dashboardTerminals(opened: () => { readonly scene: Scene; readonly seeded: Seeded }): void {
  test('a terminal shows that another window writes in it, and takes over; a terminal of a program is opened and ended only on request', async () => {
    const { scene, seeded: { sandbox } } = opened();
    const place = `sandboxes/${sandbox.id}?tab=terminal`;
    const program = await sandbox.executions.start('read line', { tty: { cols: 80, rows: 24 } });
    await using first = await scene.page(place);
    await openTerminal(first);
    const notice = first.getByText('Another window writes');
    {
      await using second = await scene.page(place);
      await second.getByLabel('For a screen reader').check();
      await second.getByRole('link', { name: 'Shell' }).click();
      await shown(second, /[$#] $/);
      await notice.waitFor();
      await second.keyboard.type('echo "by the $((1 + 1))nd"\n');
      await shown(first, 'by the 2nd');
      await second.getByRole('listitem').getByText('by the 2nd', { exact: true }).waitFor();
    }
    await first.getByRole('button', { name: 'Write here' }).click();
    await notice.waitFor({ state: 'detached' });
    await first.locator('.xterm-helper-textarea').focus();
    // Without keys, as an emoji picker does it.
    await first.keyboard.insertText('echo "🐝 by the $((2 - 1))st"');
    await first.keyboard.press('Enter');
    await shown(first, '🐝 by the 1st');
    await first.reload();
    await shown(first, 'by the 1st');
    await first.keyboard.type('exit\n');
    await first.getByRole('link', { name: 'read line' }).click();
    await first.getByRole('button', { name: 'End the terminal' }).click();
    await first.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    expect((await program.refresh()).status).toBe('running');
    await first.getByRole('button', { name: 'End the terminal' }).click();
    await first.getByRole('dialog').getByRole('button', { name: 'End' }).click();
    await first.getByText('No terminal is open').waitFor();
  });

  test('the command of a terminal waits for a visible page, so Ctrl-C has an effect at once, but not for a hidden one', async () => {
    const { scene, seeded: { sandbox } } = opened();
    await using page = await scene.page(`sandboxes/${sandbox.id}?tab=terminal`);
    let received = 0;
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => (received += payload.length)));
    await openTerminal(page);
    await page.keyboard.type('yes "a long line that floods the terminal"\n');
    await expect.poll(() => received).toBeGreaterThan(6 << 20);
    const before = received;
    await page.keyboard.press('Control+c');
    await page.keyboard.type('echo "after $((1 + 1))"\n');
    await shown(page, 'after 2');
    expect(received - before).toBeLessThan(16 << 20);
    await page.keyboard.type('until test -e go; do sleep 0.1; done; yes | head -c 40000000; echo "end of $((1 + 1))"; touch flooded\n');
    await shown(page, 'touch flooded');
    await setHidden(page, true);
    await sandbox.files.write('/workspace/go', '');
    await expect.poll(() => sandbox.files.read('/workspace/flooded').then(() => true, () => false)).toBe(true);
    await setHidden(page, false);
    await shown(page, 'end of 2');
  });

  test('a terminal that was hidden during output shows all of it again, and still writes', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=terminal`);
    let received = 0;
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => (received += payload.length)));
    await openTerminal(page);
    const before = received;
    await page.keyboard.type('seq 400000; echo "counted $((1 + 1)) times"\n');
    await expect.poll(() => received - before).toBeGreaterThan(1 << 20);
    await setHidden(page, true);
    await setHidden(page, false);
    await shown(page, 'counted 2 times');
    await page.keyboard.type('echo "and $((1 + 1)) more"\n');
    await shown(page, 'and 2 more');
  });

  test('does not type the answers to repeated output into the command', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=terminal`);
    await openTerminal(page);
    // It asks for the kind of terminal. The answer is typed into `cat`.
    await page.keyboard.type('printf "\\033[c"; cat -v\n');
    await shown(page, /\[\?1;2c$/);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.xterm-rows').getByText(/\[\?1;2c$/).count()).toBe(2);
    await page.reload();
    await shown(page, /\[\?1;2c$/);
    await page.keyboard.type('x\n');
    const typed = page.locator('.xterm-rows > div', { hasText: /x$/ });
    await expect.poll(() => typed.allTextContents()).toEqual(['x', 'x']);
  });

  test('tells the command the sizes of the screen in order', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=terminal`);
    // Requests overtake each other.
    await page.route(/\/resize$/, (route) => route.abort());
    const start = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/executions'));
    const resize = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framesent', ({ payload }) => payload.includes('resize')));
    await openTerminal(page);
    const rows = page.locator('.xterm-rows > div');
    const before = await rows.count();
    const { tty } = (await start).postDataJSON() as { readonly tty: { readonly rows: number } };
    expect(tty.rows).toBe(before);
    expect(JSON.parse(String((await resize).payload))).toEqual({ resize: tty });
    await page.setViewportSize({ width: 500, height: 500 });
    await expect.poll(() => rows.count()).toBeLessThan(before);
    await expect.poll(async () => {
      await page.keyboard.type('echo "has $(stty size)"\n');
      return await page.locator('.xterm-rows').textContent();
    }).toContain(`has ${await rows.count()} `);
  });

  test('a terminal that can’t be loaded says so, and can be tried again', async () => {
    const { scene, seeded } = opened();
    await using page = await scene.page(`sandboxes/${seeded.sandbox.id}?tab=terminal`);
    const failure = page.getByText('The terminal could not be loaded.');
    const block = () => page.route(/assets\/terminal.*js/, (route) => route.fulfill({ status: 404 }));
    await block();
    await page.getByRole('button', { name: 'Open a terminal' }).click();
    await failure.waitFor();
    await page.unroute(/assets\/terminal.*js/);
    await openTerminal(page);
    await block();
    await page.reload();
    await failure.waitFor();
    await page.unroute(/assets\/terminal.*js/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await shown(page, /[$#] $/);
  });
}

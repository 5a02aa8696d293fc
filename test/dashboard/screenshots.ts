// Writes screenshots of every page to `coverage/dashboard`: `node test/dashboard/screenshots.ts [PAGE...]`, after `npm run build`.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createScene } from './scene.ts';
import { seed } from './seed.ts';

const folder = join(import.meta.dirname, '../../coverage/dashboard');
await mkdir(folder, { recursive: true });
await using scene = await createScene();
const { conversation, sandbox } = await seed(scene.client);

const places: Readonly<Record<string, string>> = {
  'overview': 'overview', 'conversations': 'conversations', 'conversation': `conversations/${conversation.id}`,
  'changes': `conversations/${conversation.id}?tab=changes`, 'new-conversation': 'conversations?new=yes',
  'sandboxes': 'sandboxes', 'sandbox': `sandboxes/${sandbox.id}`, 'files': `sandboxes/${sandbox.id}?tab=files&path=%2Fworkspace`,
  'file': `sandboxes/${sandbox.id}?tab=files&file=%2Fworkspace%2Fserver.py`, 'logs': `sandboxes/${sandbox.id}?tab=logs`,
  'ports': `sandboxes/${sandbox.id}?tab=ports`, 'terminal': `sandboxes/${sandbox.id}?tab=terminal`, 'microagents': 'microagents',
  'microagent': 'microagents/acme%2Fshop?file=.skep%2Fmicroagents%2Fdeploy.md', 'specs': 'specs', 'keys': 'keys', 'settings': 'settings', 'missing': 'sandboxes/sb-none',
};
const wanted = process.argv.slice(2);

for (const colorScheme of ['light', 'dark'] as const) {
  for (const [width, height] of [[1440, 900], [390, 844]] as const) {
    const { context, page, errors } = await scene.open('overview', { colorScheme, viewport: { width, height }, reducedMotion: 'reduce' });
    const shoot = (name: string) => page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`) });
    for (const [name, place] of Object.entries(places).filter(([name]) => wanted.length === 0 || wanted.includes(name))) {
      await page.goto(`${scene.url}/#/${place}`);
      await page.waitForLoadState('domcontentloaded');
      if (name === 'changes') await page.locator('.file summary').first().click();
      if (name === 'terminal') {
        await page.getByRole('button', { name: 'Open a terminal' }).click();
        await page.locator('.xterm-screen').waitFor();
        await page.keyboard.type('printf "\\033[31mred \\033[38;2;90;200;120mgreen\\033[0m\\n"; ls -la --color\n');
      }
      await page.locator('.loading').waitFor({ state: 'detached' });
      // The first usage values of a sandbox and the output of a shell take a moment. A fixed wait is enough for a screenshot.
      await page.waitForTimeout(name === 'terminal' ? 1500 : 400);
      await shoot(name);
    }
    if (wanted.length === 0 || wanted.includes('palette')) {
      await page.goto(`${scene.url}/#/overview`);
      await page.keyboard.press('Control+k');
      await page.getByRole('option').first().waitFor();
      await shoot('palette');
      await page.evaluate(() => localStorage.clear());
      await page.reload();
      await shoot('login');
    }
    console.log(colorScheme, width, errors);
    await context.close();
  }
}

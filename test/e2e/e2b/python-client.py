"""Uses E2B's Python package. The environment has the key and the addresses. Exits with 1 at the first difference from E2B."""

import asyncio
import os

import httpx
from e2b import AsyncSandbox, Sandbox
from e2b.exceptions import FileNotFoundException, InvalidArgumentException, SandboxNotRunningException, TimeoutException
from e2b.sandbox.commands.command_handle import CommandExitException


def raises(error, work):
    try:
        result = work()
    except error:
        return
    raise AssertionError(f'{result!r} instead of {error.__name__}')


async def rejects(error, work):
    try:
        result = await work
    except error as thrown:
        return thrown
    raise AssertionError(f'{result!r} instead of {error.__name__}')


def sync_client():
    with Sandbox.create('web', timeout=600, metadata={'task': '42'}, envs={'GREETING': 'hello'}) as sandbox:
        assert sandbox.get_info().metadata == {'task': '42'}
        printed = []
        result = sandbox.commands.run('echo $GREETING; echo oops >&2', on_stdout=printed.append)
        assert (result.stdout, result.stderr, printed) == ('hello\n', 'oops\n', ['hello\n'])
        raises(CommandExitException, lambda: sandbox.commands.run('exit 3'))
        raises(InvalidArgumentException, lambda: sandbox.commands.run('true', cwd='missing'))
        assert [one.sandbox_id for one in Sandbox.list(order='asc').next_items()] == [sandbox.sandbox_id]
        assert sandbox.files.write('a/b.txt', 'text').path.endswith('/a/b.txt')
        assert sandbox.files.read('a/b.txt', format='bytes') == b'text'
        assert sandbox.commands.run('cat b.txt', cwd='a').stdout == 'text'
        assert [entry.name for entry in sandbox.files.list('a')] == ['b.txt']
        raises(FileNotFoundException, lambda: sandbox.files.read('missing'))
        raises(InvalidArgumentException, lambda: sandbox.files.read('a'))
        sandbox.files.remove('missing')
        sandbox.commands.run('ln -s b.txt link', cwd='a')
        link = sandbox.files.get_info('a/link')
        assert (link.type.value, link.symlink_target) == ('file', sandbox.files.get_info('a/b.txt').path)
        changes = sandbox.files.watch_dir('a', recursive=True)
        sandbox.files.remove('a/b.txt')
        assert [event.type.value for event in changes.get_new_events()] == ['remove']
        sandbox.files.write('a/new/c.txt', 'text')
        assert {(event.type.value, event.name) for event in changes.get_new_events()} == {
            ('create', 'new'), ('create', 'new/c.txt'), ('write', 'new/c.txt')}
        assert httpx.post(sandbox.upload_url('up.txt'), files={'file': ('up.txt', b'sent')}).status_code == 200
        assert httpx.get(sandbox.download_url('up.txt')).content == b'sent'


async def async_client():
    sandbox = await AsyncSandbox.create('web', timeout=600)
    await rejects(TimeoutException, sandbox.commands.run('sleep 100', timeout=1))
    cat = await sandbox.commands.run('cat', background=True, stdin=True)
    async with sandbox.commands.stream_input(cat.pid) as content:
        await content.send('one ')
        await content.send('two')
    await cat.close_stdin()
    assert (await cat.wait()).stdout == 'one two'
    ended = asyncio.Event()
    await sandbox.files.watch_dir('.', on_event=lambda event: None, on_exit=lambda error: ended.set(), timeout=1)
    await asyncio.wait_for(ended.wait(), 10)
    sleeping = await sandbox.commands.run('sleep 100', background=True)
    waiting = asyncio.create_task(sleeping.wait())
    assert await sandbox.kill()
    assert 'sandbox was killed or reached its end of life' in str(await rejects(SandboxNotRunningException, waiting))
    await rejects(SandboxNotRunningException, sandbox.files.read('up.txt'))
    assert not await sandbox.is_running()


sync_client()
asyncio.run(async_client())
# The package's HTTP client has threads that can abort the interpreter while it ends.
os._exit(0)

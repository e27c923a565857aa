"""Runs nets on a Vulkan device in a process that stays (enginerun_device --serve), since opening the device takes each process half a
second, one after the other.

QUOLL_TEST_GPU: the number of a Vulkan device. Nets run there as far as the device can, whether it is worth their copies or not.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import threading

PROGRAM = 'enginerun_device'
GPU = os.environ.get('QUOLL_TEST_GPU', '')
_servers = threading.local()


class Server:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory()
        self.printed, self.said = (pathlib.Path(self.folder.name) / name for name in ('stdout', 'stderr'))
        self.process = subprocess.Popen([str(program), '--serve'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, arguments, timeout):
        """As subprocess.run: the exit code is the signal's, negative, where the process has ended of one."""
        expired = threading.Event()

        def end():
            expired.set()
            self.process.kill()

        timer = threading.Timer(timeout, end)
        timer.start()
        try:
            print(json.dumps([str(self.printed), str(self.said), *arguments]), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ''
        finally:
            timer.cancel()
        if expired.is_set():
            raise subprocess.TimeoutExpired(arguments, timeout)
        texts = [path.read_text(errors='replace') if path.exists() else '' for path in (self.printed, self.said)]
        return subprocess.CompletedProcess(arguments, int(answer) if answer else self.process.wait(), *texts)


def run(program, *arguments, timeout):
    """The finished run of enginerun_device: stdout and stderr as text. Each thread has a process of its own."""
    server = getattr(_servers, 'server', None)
    if not server or server.process.poll() is not None:
        server = _servers.server = Server(program)
    return server.run([str(a) for a in arguments], timeout)
